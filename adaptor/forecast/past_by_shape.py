"""The newest waits of jobs of the same shape: the plainest forecast, and the floor of all others. Pure."""

from __future__ import annotations

import math
from collections import defaultdict, deque

from adaptor.forecast.estimate import estimate
from adaptor.model import Estimate

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
        self._newest[shape_of(processors, limit, gpus)].append(wait)
        self._newest[None].append(wait)

    def like(self, processors: int, limit: float, gpus: int = 0) -> Estimate | None:
        """The wait of such a job, with the middle 90 % of those of its shape. None: no job has started."""
        shape = shape_of(processors, limit, gpus)
        known = self._newest[shape if shape in self._newest else None]
        return estimate(known) if known else None


def shape_of(processors: int, limit: float, gpus: int) -> tuple[int, int, bool]:
    """The powers of two of its processors and of its limit in seconds, and whether it asks for GPUs."""
    return round(math.log2(max(1, processors))), round(math.log2(min(max(1.0, limit), 1e9))), gpus > 0
