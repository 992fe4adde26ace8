"""The binomial bound on the wait of a job (BMBP), the baseline of forecasts of starts.

Brevik, Nurmi and Wolski (2006), *Predicting bounds on queuing delay for batch-scheduled parallel machines*,
PPoPP; the same method is the base of QBETS (Nurmi, Brevik and Wolski 2007, JSSPP).
"""

from __future__ import annotations

import bisect
import math
from collections import deque
from functools import lru_cache

QUANTILE, CONFIDENCE = 0.95, 0.95
_RARE = 3
"""Misses in a row that count as a change of the queue: by chance, 1 of 8,000 waits begins three such. The
paper allows more where waits are autocorrelated."""
_WIDTHS = (4, 16, 64)  # the largest processors of the kinds of similar jobs; wider jobs are the last kind


@lru_cache(maxsize=1 << 16)
def bound_place(waits: int) -> int | None:
    """The place from 0, in ascending order, of the past wait that is the bound; None: too few are known.

    At most `place` of the waits lie below the quantile with probability P(Binomial(n, q) <= place), so the
    order statistic bounds the quantile from above with the confidence. 59 waits are the fewest.
    """
    from scipy.stats import binom  # takes seconds to import

    place = int(binom.ppf(CONFIDENCE, waits, QUANTILE))
    return place if place < waits else None


FEWEST = math.ceil(math.log(1 - CONFIDENCE) / math.log(QUANTILE))


class BinomialBound:
    """Learns from the waits of similar jobs as they start; times in seconds."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._sorted: list[float] = []
        self._missed = 0

    @property
    def bound(self) -> float | None:
        """The upper bound on the 0.95 quantile of waits with 95 % confidence; None: too few are known."""
        place = bound_place(len(self._sorted))
        return None if place is None else self._sorted[place]

    @property
    def median(self) -> float | None:
        """Median of the waits that count; None: too few are known."""
        return None if self.bound is None else self._sorted[len(self._sorted) // 2]

    def started(self, wait: float, bound: float | None) -> None:
        """Learn from a job that has started.

        Args:
            bound: that was given at its submission; None: none was.
        """
        self._recent.append(wait)
        bisect.insort(self._sorted, wait)
        self._missed = self._missed + 1 if bound is not None and wait > bound else 0
        if self._missed >= _RARE:
            self._missed = 0
            while len(self._recent) > FEWEST:
                del self._sorted[bisect.bisect_left(self._sorted, self._recent.popleft())]


def kind_of(processors: int) -> int:
    """Class of similar jobs: those of about the same width."""
    return bisect.bisect_left(_WIDTHS, processors)
