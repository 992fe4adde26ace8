"""From the state of the queue to its plan: when each job starts, and what is free beside them all."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, QueueState

OVERRUN = 60.0
"""Seconds that a job is taken to go on that runs past its limit: schedulers end jobs by the minute."""


class Schedule(msgspec.Struct, frozen=True):
    """What is planned at a site."""

    profile: Profile
    """What is free beside all running and planned jobs."""
    starts: dict[str, float]
    """Planned start of each pending job, by id; `math.inf` for one that never starts as things are."""


def availability(queue: QueueState) -> Profile:
    """The availability profile from `queue.now` on (see `schedule`)."""
    return schedule(queue).profile


def schedule(queue: QueueState) -> Schedule:
    """Plan the queue by conservative backfilling (De Rose §2): a job gets the first hole it fits.

    Running jobs hold their processors until their limit. Pending jobs that the scheduler has planned
    hold theirs from the planned start on (from now on where that is past); where this contradicts our
    count of processors, nothing is free. The others follow in the order of the queue, each as early as
    it can start without delaying one before it. One that is larger than the site is left out.
    """
    now = queue.now
    holds = [(now, job.end if job.end > now else now + OVERRUN, job.processors) for job in queue.running]
    starts: dict[str, float] = {}
    for job in queue.pending:
        if job.planned_start is not None:
            starts[job.id] = max(job.planned_start, now)
            holds.append((starts[job.id], starts[job.id] + job.tr, job.processors))
    profile = Profile.holding(now, queue.processors, holds)
    _backfill(profile, [job for job in queue.pending if job.planned_start is None], starts)
    return Schedule(profile, starts)


def _backfill(profile: Profile, jobs: list[PendingJob], starts: dict[str, float]) -> None:
    """Plan jobs in this order, each at its earliest start.

    While jobs are added the profile only sinks, so a job never starts before one of the same shape
    that was planned earlier: the search goes on from there.
    """
    reached: dict[tuple[int, float], float] = {}
    for job in jobs:
        shape = (job.processors, job.tr)
        start = profile.earliest_start(job.processors, job.tr, reached.get(shape, -math.inf))
        reached[shape] = starts[job.id] = start
        if start < math.inf:
            profile.take(start, job.tr, job.processors)
