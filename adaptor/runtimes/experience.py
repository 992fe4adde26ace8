"""How long tasks took, kept one by one: for what has a heavy tail, mean and deviation say too little."""

from __future__ import annotations

import bisect
import random


class Experience:
    """Runtimes of finished tasks, in seconds of one site; what they say of one that still runs."""

    def __init__(self, most: int | None = None) -> None:
        """`most`: of more than so many a random sample is kept, the same in each run."""
        self._most, self._seen = most, 0
        self._draw: random.Random | None = None
        self._sorted: list[float] = []
        self._above: list[float] | None = None
        """Sums from each place to the end."""

    def add(self, runtime: float) -> None:
        self._seen += 1
        if self._most is not None and len(self._sorted) >= self._most:
            if self._draw is None:  # to seed one takes longer than all the rest
                self._draw = random.Random(0)  # noqa: S311 - no secret
            if self._draw.randrange(self._seen) >= self._most:
                return
            del self._sorted[self._draw.randrange(self._most)]
        bisect.insort(self._sorted, runtime)
        self._above = None

    def __len__(self) -> int:
        return len(self._sorted)

    def late(self, elapsed: float, share: float = 0.9) -> float:
        """Seconds that such a task takes in a bad case: all but this share of the longer ones took less.

        A bag ends with its last task, and idle time that is paid costs nothing; so copies are made for
        what may happen, not for the mean.
        """
        place = bisect.bisect_right(self._sorted, elapsed)
        longer = len(self._sorted) - place
        return self._sorted[place + int(share * longer)] if longer else 2 * elapsed

    def whole(self, elapsed: float) -> float:
        """Seconds that a task is expected to take in all, that has run for so long.

        The mean of the finished ones that took longer. Where none did, as much again: what has outlived
        all others comes from a heavy tail, if anything is to be said of it.
        """
        place = bisect.bisect_right(self._sorted, elapsed)
        longer = len(self._sorted) - place
        if not longer:
            return 2 * elapsed
        if self._above is None:
            self._above = self._sums()
        return self._above[place] / longer

    def _sums(self) -> list[float]:
        sums, total = [0.0] * len(self._sorted), 0.0
        for place in range(len(self._sorted) - 1, -1, -1):
            total += self._sorted[place]
            sums[place] = total
        return sums
