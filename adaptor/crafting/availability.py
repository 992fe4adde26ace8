"""From the queue state to a schedule: the start of each job, and the processors that stay free."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, QueueState

OVERRUN = 60.0
"""Seconds that a job beyond its time limit is assumed to go on: schedulers end jobs by the minute."""


class PlannedQueue(QueueState, frozen=True, kw_only=True):
    """The queue state of a scheduler that reports its whole plan at once, instead of job by job.

    `running` and `pending` are the jobs that the plan does not contain yet.
    """

    plan: tuple[tuple[float, int], ...]
    """`(epoch seconds, processors free from then on)` in order of time, from now on; neighbours differ."""


class Schedule(msgspec.Struct, frozen=True):
    """The planned schedule of a site."""

    profile: Profile
    """The processors that running and planned jobs leave free."""
    starts: dict[str, float]
    """By id: the planned start of each pending job (epoch seconds); `math.inf`: it never starts."""


def availability(queue: QueueState) -> Profile:
    """The availability profile from `queue.now` on (see `schedule`)."""
    return schedule(queue).profile


def schedule(queue: QueueState) -> Schedule:
    """Plan the queue by conservative backfilling (De Rose §2): a job gets the first hole it fits.

    Running jobs hold their processors until their time limit. Pending jobs with a start planned by the
    scheduler hold theirs from that start on (from now on if it is past); where such plans need more
    processors than the site has, none are free. The other jobs follow in queue order, each as early as
    possible without delaying an earlier one. A job larger than the site gets no start.
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
    """The profile that the holds and the scheduler's own plan leave free."""
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

    Each planned job only lowers the profile, so a job never starts before an earlier job of the same
    shape: the search continues from that job's start.
    """
    reached: dict[tuple[int, float], float] = {}
    for job in jobs:
        shape = (job.processors, job.tr)
        start = profile.earliest_start(job.processors, job.tr, reached.get(shape, -math.inf))
        reached[shape] = starts[job.id] = start
        if start < math.inf:
            profile.take(start, job.tr, job.processors)
