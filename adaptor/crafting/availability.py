"""From the state of the queue to its plan: when each job starts, and what is free beside them all."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, QueueState

OVERRUN = 60.0
"""Seconds that a job is taken to go on that runs past its limit: schedulers end jobs by the minute."""


class PlannedQueue(QueueState, frozen=True, kw_only=True):
    """The state of a queue whose scheduler tells its whole plan at once, instead of job by job.

    `running` and `pending` are what the plan does not hold yet.
    """

    plan: tuple[tuple[float, int], ...]
    """`(time, processors free from then on)` by time, the first one now, neighbours different."""


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
    profile = _beside(queue, holds)
    _backfill(profile, [job for job in queue.pending if job.planned_start is None], starts)
    return Schedule(profile, starts)


def _beside(queue: QueueState, holds: list[tuple[float, float, int]]) -> Profile:
    """What is free beside the holds and what the scheduler's own plan holds."""
    if not isinstance(queue, PlannedQueue):
        return Profile.holding(queue.now, queue.processors, holds)
    if not holds:
        return Profile.of_steps(queue.plan)
    return Profile.holding(queue.now, queue.processors, [*_held_by_plan(queue), *holds])


def _held_by_plan(queue: PlannedQueue) -> list[tuple[float, float, int]]:
    ends = [*(time for time, _ in queue.plan[1:]), math.inf]
    return [
        (time, end, queue.processors - free)
        for (time, free), end in zip(queue.plan, ends, strict=True)
        if free < queue.processors
    ]


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
