"""Times at which a job of the daemon looks at the queue, has the next one queued, and ends. Pure; seconds."""

from __future__ import annotations

_PAD = 20.0
_LOOKS = 10.0, 300.0  # the shortest pause between two looks, and the longest
_MARGIN = 1.5
"""Factor on the wait that the queue forecasts: one interval in ten does not hold."""


def pad(walltime: float) -> float:
    """Seconds before the end of its time at which a job ends its daemon itself."""
    return min(_PAD, walltime / 10)


def looks_apart(walltime: float) -> float:
    """Seconds between two looks of a job at the jobs that follow it."""
    shortest, longest = _LOOKS
    return min(longest, max(shortest, walltime / 100))


def lead(walltime: float, wait: float | None) -> float:
    """Seconds before its end at which a job has another one in the queue that may start at once.

    Args:
        walltime: seconds of the job.
        wait: longest forecast wait of the other job, seconds; None: there is no forecast.
    """
    least = 2 * looks_apart(walltime) + pad(walltime)
    return min(walltime / 2, least + _MARGIN * (walltime / 6 if wait is None else wait))
