"""Chance that a task that has run for a time runs on up to another. Pure; times in seconds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from adaptor.runtimes.sample import RuntimeSample


class Survival:
    """Kaplan & Meier's estimate (1958) from finished tasks and from those that run, which count as censored.

    One further task counts as longer than all of them, so what outlives the longest is rare and not
    impossible; beyond, the chance falls with the square of the time.
    """

    def __init__(self, finished: RuntimeSample, running: Iterable[float]) -> None:
        """
        Args:
            finished: runtimes; none: nothing is rare.
            running: for how long each running task has run.
        """
        self._finished, ages = finished.ordered, sorted(running)
        self.longest = max([finished.longest, *ages[-1:]])
        """Longest time for which a task has run, finished or not."""
        self._outlive = [1.0]
        """The share of tasks that outlives the first finished ones, by their number."""
        for place, runtime in enumerate(self._finished):
            still = finished.every * (len(self._finished) - place) + len(ages) - bisect_left(ages, runtime)
            self._outlive.append(self._outlive[-1] * (1 - finished.every / (still + 1)))

    def chance(self, ran: float, until: float) -> float:
        """Chance that a task that has run for `ran` still runs after `until` seconds."""
        first, last = (bisect_right(self._finished, time) for time in (ran, until))
        known = max(ran, self.longest)
        return self._outlive[last] / self._outlive[first] * (min(1.0, known / until) ** 2 if until else 1.0)
