"""Bounded slowdowns of jobs: times by which a wait makes a job longer (Feitelson & Rudolph 1998).

A short job counts as one of `SHORT`, else seconds of wait would decide the mean. Per processor, a wide job
may wait longer than a narrow one (Zotkin & Keleher 1999).
"""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor_simulation.kernels import Array

SHORT = 10
"""Seconds."""


def mean_slowdown(wait: Array, run: Array, processors: Array | int = 1) -> float:
    """Mean over the jobs of max(1, turnaround / (processors × max(run, 10 s))); 1: there is no job.

    Args:
        wait: seconds, as `run`.
        processors: of each job; 1: not per processor.
    """
    if not len(wait):
        return 1.0
    return float(np.maximum(1.0, (wait + run) / (np.maximum(run, SHORT) * processors)).mean())


class Slowdowns(msgspec.Struct, frozen=True, kw_only=True):
    """Mean bounded slowdowns of the local jobs with a bag and without it."""

    slowdown: float
    slowdown_without: float
    """The same if the bag had not come."""
    slowdown_per_processor: float
    slowdown_per_processor_without: float

    @property
    def slower(self) -> float:
        """Slowdown over that without the bag."""
        return self.slowdown / self.slowdown_without

    @property
    def slower_per_processor(self) -> float:
        """The same per processor."""
        return self.slowdown_per_processor / self.slowdown_per_processor_without


UNHARMED = Slowdowns(
    slowdown=1.0, slowdown_without=1.0, slowdown_per_processor=1.0, slowdown_per_processor_without=1.0
)
