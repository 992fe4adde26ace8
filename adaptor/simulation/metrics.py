"""How a schedule served its jobs."""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor.simulation.jobs import Jobs, Seconds

SHORT = 10
"""Seconds below which a run time counts as this much in a bounded slowdown (Feitelson 2005)."""


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Over all jobs, without trimming; times in seconds."""

    jobs: int
    mean_wait: float
    median_wait: float
    longest_wait: int
    mean_turnaround: float
    mean_bounded_slowdown: float
    """max(1, turnaround / max(run, 10 s))."""
    mean_bounded_slowdown_per_processor: float
    """max(1, turnaround / (processors × max(run, 10 s)))."""
    waited: int
    """Jobs that did not start in the second in which they were submitted."""
    makespan: int
    """From the first submission to the last end."""
    utilisation: float
    """Of the processors over the makespan, 0 to 1."""
    utilisation_while_submitting: float
    """Of the processors from the first to the last submission."""


def measure(jobs: Jobs, starts: Seconds, processors: int) -> Metrics:
    """Metrics of a schedule of at least one job, all of them started."""
    wait, ends = starts - jobs.submit, starts + jobs.run
    turnaround, bounded = ends - jobs.submit, np.maximum(jobs.run, SHORT)
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    makespan = int(ends.max()) - first
    return Metrics(
        jobs=len(jobs),
        mean_wait=float(wait.mean()),
        median_wait=float(np.median(wait)),
        longest_wait=int(wait.max()),
        mean_turnaround=float(turnaround.mean()),
        mean_bounded_slowdown=float(np.maximum(1, turnaround / bounded).mean()),
        mean_bounded_slowdown_per_processor=float(
            np.maximum(1, turnaround / (bounded * jobs.processors)).mean()
        ),
        waited=int((wait > 0).sum()),
        makespan=makespan,
        utilisation=jobs.area / (processors * makespan),
        utilisation_while_submitting=_area_within(jobs, starts, first, last)
        / (processors * max(last - first, 1)),
    )


def _area_within(jobs: Jobs, starts: Seconds, begin: int, end: int) -> int:
    used = np.minimum(starts + jobs.run, end) - np.maximum(starts, begin)
    return int(np.dot(np.maximum(used, 0), jobs.processors))
