"""A possible future of a queue: each local job runs a share of its time limit, drawn at random. Pure."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from adaptor.crafting.availability import Schedule, schedule
from adaptor.crafting.fits import placeable
from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import TaskSize

_LEAST = 1.0  # seconds that a job runs at least


def planned(queue: QueueState) -> Schedule:
    """The schedule by the jobs' time limits, counted in processors."""
    return schedule(msgspec.structs.replace(queue, nodes=()))


def drawn_jobs(
    queue: QueueState,
    shares: Sequence[float],
    since: Mapping[str, float],
    own: Collection[str],
    draw: random.Random,
    by_job: Mapping[str, Sequence[float]],
    starts: Mapping[str, float],
) -> QueueState:
    """The queue in which each job asks for what it will run, in the order of the planned starts.

    Planned again, the jobs move forward in that order as others end early: no job starts later than planned,
    as by conservative backfilling, where a job that has a hole to itself keeps it. Reservations and what else
    is no job stay as they are.

    Args:
        shares: of their limits that jobs run, in order; equally likely, at least one.
        since: by running job when it was first seen, epoch seconds.
        own: jobs that run as long as they may.
        by_job: such shares of jobs of which more is known.
        starts: by id, as planned; epoch seconds.
    """
    running = [
        job
        if job.id in own or not is_job(job.id)
        else msgspec.structs.replace(job, end=_end(job, queue.now, by_job.get(job.id, shares), since, draw))
        for job in queue.running
    ]
    pending = []
    for job in sorted(queue.pending, key=lambda job: starts[job.id]):
        if is_job(job.id):
            whole = job.id in own or math.isinf(job.tr)
            tr = job.tr if whole else max(_LEAST, draw.choice(by_job.get(job.id, shares)) * job.tr)
            job = msgspec.structs.replace(job, tr=tr, planned_start=None, parts=())
        pending.append(job)
    return msgspec.structs.replace(queue, running=tuple(running), pending=tuple(pending))


def all_ended(queue: QueueState, own: Collection[str]) -> QueueState:
    """The queue in which each job of others ends at once. Reservations and what else is no job stay."""
    running = [
        job if job.id in own or not is_job(job.id) else msgspec.structs.replace(job, end=queue.now + _LEAST)
        for job in queue.running
    ]
    pending = [job for job in queue.pending if job.id in own or not is_job(job.id)]
    return msgspec.structs.replace(queue, running=tuple(running), pending=tuple(pending))


def ended_by(queue: QueueState, ends: Mapping[str, float]) -> QueueState:
    """The queue in which these jobs end by then, whatever their limits, and jobs behind them start sooner.

    `ends`: epoch seconds by job; one that starts later lasts for a moment.
    """
    partitions = {name: ended_by(each, ends) for name, each in queue.partitions.items()}
    jobs: list[RunningJob | PendingJob] = [*queue.running, *queue.pending]
    if not any(job.id in ends for job in jobs):
        return msgspec.structs.replace(queue, partitions=partitions) if partitions else queue
    running = []
    for job in queue.running:
        end = max(queue.now + _LEAST, ends.get(job.id, math.inf))
        running.append(job if end >= job.end else msgspec.structs.replace(job, end=end))
    pending = [
        msgspec.structs.replace(job, planned_start=None, parts=()) if is_job(job.id) else job
        for job in queue.pending
    ]
    found = msgspec.structs.replace(
        queue, running=tuple(running), pending=_cut(pending, ends, queue.now), partitions=partitions
    )
    if any(job.id in ends for job in found.pending):
        starts = planned(found).starts
        found = msgspec.structs.replace(found, pending=_cut(found.pending, ends, queue.now, starts))
    return found


def is_job(id: str) -> bool:
    """Whether an id of a queue is that of a job: those of reservations and licences are words."""
    return " " not in id


def fitting(profile: Profile, queue: QueueState, task: TaskSize) -> Profile:
    """Processors of a future's profile that tasks of a size can use, by their share of the empty nodes.

    Single nodes are not followed into the future; a task never spans two of them.
    """
    return scaled(profile, queue, placeable(queue, task))


def scaled(profile: Profile, queue: QueueState, most: int) -> Profile:
    """The profile for requests that can use `most` processors of the empty nodes, scaled in proportion."""
    if most >= queue.processors:
        return profile
    steps: list[tuple[float, int]] = []
    for time, free in profile.steps():
        usable = free * most // queue.processors
        if not steps or steps[-1][1] != usable:
            steps.append((time, usable))
    return Profile.of_steps(steps)


def _cut(
    jobs: Iterable[PendingJob], ends: Mapping[str, float], now: float, starts: Mapping[str, float] = {}
) -> tuple[PendingJob, ...]:
    """The jobs, which last until their ends at most. `starts`: by id; without one: now."""
    return tuple(
        msgspec.structs.replace(job, tr=min(job.tr, max(_LEAST, ends[job.id] - starts.get(job.id, now))))
        if job.id in ends
        else job
        for job in jobs
    )


def _end(
    job: RunningJob, now: float, shares: Sequence[float], since: Mapping[str, float], draw: random.Random
) -> float:
    """A share of its limit beyond what it has run; of a job never seen before, it has run half."""
    left = job.end - now
    if left <= 0 or math.isinf(left):
        return job.end
    ran = max(0.0, now - since[job.id]) if job.id in since else left
    ran = max(ran, left * draw.random())  # it may have run long before it was first seen
    limit = ran + left
    first = bisect.bisect_right(shares, ran / limit)
    share = draw.choice(shares[first:]) if first < len(shares) else 1.0
    return now + max(_LEAST, share * limit - ran)
