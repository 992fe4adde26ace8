"""The floor of forecasts of starts: the median of the newest waits of jobs of the same shape."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from statistics import median

_NEWEST = 300  # waits that count


class PastByShape:
    """Learns from the waits of jobs as they start; times in seconds.

    Jobs are of one shape if their processors and limits are the same powers of two, rounded, and both or none
    ask for GPUs. A shape that has never started is forecast from the newest waits of all.
    """

    def __init__(self) -> None:
        self._newest: dict[tuple[int, int, bool] | None, deque[float]] = defaultdict(
            lambda: deque(maxlen=_NEWEST)
        )

    def started(self, processors: int, limit: float, gpus: int = 0, *, wait: float) -> None:
        self._newest[_shape(processors, limit, gpus)].append(wait)
        self._newest[None].append(wait)

    def median(self, processors: int, limit: float, gpus: int = 0) -> float | None:
        """None: no job has started."""
        shape = _shape(processors, limit, gpus)
        known = self._newest[shape if shape in self._newest else None]
        return median(known) if known else None


def _shape(processors: int, limit: float, gpus: int) -> tuple[int, int, bool]:
    return round(math.log2(max(1, processors))), round(math.log2(max(1.0, limit))), gpus > 0
