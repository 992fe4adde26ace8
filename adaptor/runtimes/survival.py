"""Survival of a task that has run for a time: the chance that it runs on, and how long it takes. Pure.

Times in seconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate

from adaptor.runtimes.sample import RuntimeSample


class Survival:
    """Kaplan & Meier's estimate (1958) from finished tasks and from those that run, which count as censored.

    One further task counts as longer than all of them, so what outlives the longest is rare and not
    impossible; beyond, the chance falls with the square of the time.
    """

    def __init__(self, finished: RuntimeSample, running: Iterable[float] = ()) -> None:
        """
        Args:
            finished: runtimes; none: nothing is rare.
            running: for how long each running task has run.
        """
        self._finished, self._every, self._ages = finished.ordered, finished.every, sorted(running)
        self.longest = max([finished.longest, *self._ages[-1:]])
        """Longest time for which a task has run, finished or not."""

    @cached_property
    def _outlive(self) -> list[float]:
        """The share of tasks that outlives the first finished ones, by their number."""
        shares = [1.0]
        for place, runtime in enumerate(self._finished):
            running = len(self._ages) - bisect_left(self._ages, runtime)
            still = self._every * (len(self._finished) - place) + running
            shares.append(shares[-1] * (1 - self._every / (still + 1)))
        return shares

    @cached_property
    def _sums(self) -> list[float]:
        return list(accumulate(self._finished, initial=0.0))

    def chance(self, ran: float, until: float) -> float:
        """Chance that a task that has run for `ran` still runs after `until` seconds."""
        first, last = (bisect_right(self._finished, time) for time in (ran, until))
        known = max(ran, self.longest)
        return self._outlive[last] / self._outlive[first] * (min(1.0, known / until) ** 2 if until else 1.0)

    def whole(self, ran: float) -> float:
        """Expected runtime of a task that has run for `ran`.

        The mean of the finished ones that took longer. Where none did, as much again: what has outlived
        all others comes from a heavy tail, if anything is to be said of it.
        """
        shorter, longer = self._parted(ran)
        return (self._sums[-1] - self._sums[shorter]) / longer if longer else 2 * ran

    def late(self, ran: float, share: float = 0.9) -> float:
        """Runtime in a bad case of a task that has run for `ran`: most of the longer finished ones took less.

        A bag ends with its last task, and idle time that is paid costs nothing; so copies are made for
        what may happen, not for the mean. Those that run do not count: they may be late by their node. By the
        chances above bags whose tasks are late by their machine end 2 to 3 % later.
        """
        shorter, longer = self._parted(ran)
        return self._finished[shorter + int(share * longer)] if longer else 2 * ran

    def _parted(self, ran: float) -> tuple[int, int]:
        """Numbers of finished tasks that took no longer, and of those that did."""
        shorter = bisect_right(self._finished, ran)
        return shorter, len(self._finished) - shorter
