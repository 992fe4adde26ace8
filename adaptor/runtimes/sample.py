"""A bounded sample of the runtimes of a bag's finished tasks: the same after a restart.

Of what has a heavy tail, mean and deviation say too little.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

MOST = 1000  # runtimes in a sample, at most


class RuntimeSample:
    """The runtimes of every task whose number is a multiple of `every`, which doubles as the bag grows.

    The sample follows from the numbers of the tasks alone, so a daemon that is restarted draws the same.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runtimes: dict[int, float] = {}
        self._sorted: list[float] | None = None
        self._sums: list[float] | None = None  # of the `_sorted` runtimes up to each place
        self.every = 1

    def add(self, task: int, runtime: float) -> None:
        """A task finished after `runtime` seconds."""
        if task % self.every:
            return
        self._sorted = self._sums = None
        self._runtimes[task] = runtime
        while len(self._runtimes) > self._most:
            self.every *= 2
            self._runtimes = {
                number: seconds for number, seconds in self._runtimes.items() if not number % self.every
            }

    def __len__(self) -> int:
        return len(self._runtimes)

    @property
    def runtimes(self) -> tuple[float, ...]:
        """Seconds, in the order in which the tasks finished."""
        return tuple(self._runtimes.values())

    @property
    def places(self) -> tuple[int, ...]:
        """The numbers of those tasks, in the same order."""
        return tuple(self._runtimes)

    @property
    def longest(self) -> float:
        """Seconds; 0: none is known."""
        return self.ordered[-1] if self._runtimes else 0.0

    @property
    def ordered(self) -> Sequence[float]:
        """Seconds, the shortest first."""
        if self._sorted is None:
            self._sorted = sorted(self._runtimes.values())
        return self._sorted

    def late(self, elapsed: float, share: float = 0.9) -> float:
        """Runtime in a bad case of a task that has run for `elapsed`: most of the longer ones took less.

        A bag ends with its last task, and idle time that is paid costs nothing; so copies are made for
        what may happen, not for the mean.
        """
        ordered, place = self._longer_than(elapsed)
        longer = len(ordered) - place
        return ordered[place + int(share * longer)] if longer else 2 * elapsed

    def whole(self, elapsed: float) -> float:
        """Expected runtime of a task that has run for `elapsed`, seconds.

        The mean of the finished ones that took longer. Where none did, as much again: what has outlived
        all others comes from a heavy tail, if anything is to be said of it.
        """
        ordered, place = self._longer_than(elapsed)
        longer = len(ordered) - place
        if not longer:
            return 2 * elapsed
        if self._sums is None:
            self._sums = [0.0, *itertools.accumulate(ordered)]
        return (self._sums[-1] - self._sums[place]) / longer

    def _longer_than(self, elapsed: float) -> tuple[Sequence[float], int]:
        """All runtimes in order, and the place of the first that is longer."""
        return self.ordered, bisect.bisect_right(self.ordered, elapsed)
