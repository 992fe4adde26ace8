"""What tells the daemon's pilots from the hosts of the papers.

They cannot go on beyond the end of their request, and start no task for which they have no time until then
(De Rose 2008, §4.3.1), as far as runtimes are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor.runtimes.learner import RuntimeLearner

_FACTOR = 2
"""The default of `growth_factor`."""


class PilotRules:
    def __init__(self) -> None:
        self.learner = RuntimeLearner(initial=0.0, factor=_FACTOR, longest=math.inf)

    @property
    def _knows(self) -> bool:
        return self.learner.mean is not None or bool(self.learner.cut_tasks)

    def needed(self, queue: Sequence[int]) -> float:
        """Seconds that the tasks which wait are known to need at least; 0: nothing is known."""
        if not self._knows:
            return 0.0
        if len(queue) > len(self.learner.cut_tasks):
            return self.learner.estimate
        return min(map(self.learner.estimate_of, queue), default=0.0)

    def place(self, queue: Sequence[int], time_left: float) -> int | None:
        """Of the next task, from the end of the queue, that a host starts; None: it has time for none."""
        odd = len(self.learner.cut_tasks) + 1
        for place in range(-1, -min(len(queue), odd) - 1, -1):
            if not self._knows or self.learner.estimate_of(queue[place]) <= time_left:
                return place
        return None
