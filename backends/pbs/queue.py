"""The rows of jobs, nodes and reservations to the state of a site's queue. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.model import PendingJob, QueueState, RunningJob
from backends.hidden import HIDDEN, with_hidden
from backends.pbs.nodes import SiteNode, SiteNodes
from backends.pbs.reasons import is_considered
from backends.pbs.rows import PbsJob, PbsQueue, PbsReservation

LINGER = 60.0
"""Seconds for which a job is taken to hold its nodes that is past its limit or about to end."""
_HOLDING = frozenset("RE")
"""States of jobs that hold processors. A suspended one (S, U) has given its back."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    site: SiteNodes
    jobs: Sequence[PbsJob]
    queues: Mapping[str, PbsQueue] = {}
    reservations: Sequence[PbsReservation] = ()
    """Other than the one that the site itself uses."""
    whole_nodes: bool = False


def queue_state(seen: Observation) -> QueueState:
    """What a planner needs to know.

    Where only whole nodes are given, a node that is partly in use is wholly so.
    """
    held = _holders(seen)
    used = _used(held)
    idle = [(each, _idle(seen, each, used)) for each in _active(seen)]
    running = _by_node(seen, held) if seen.whole_nodes else _by_job(seen, held, used, idle)
    return QueueState(
        now=seen.now,
        processors=seen.site.processors,
        running=(*running, *_active_reservations(idle)),
        pending=(*_coming_reservations(seen), *_pending(seen)),
        nodes=seen.site.machines,
    )


class _Holder(msgspec.Struct, frozen=True):
    """A job's part on the nodes of the site."""

    id: str
    end: float
    nodes: dict[str, int]
    """Processors by node."""

    @property
    def processors(self) -> int:
        return sum(self.nodes.values())


def _holders(seen: Observation) -> list[_Holder]:
    found = []
    for job in seen.jobs:
        nodes = seen.site.among(job.nodes) if job.state in _HOLDING else {}
        if nodes:
            shares = {name: _share(seen.site.nodes[name], count) for name, count in nodes.items()}
            found.append(_Holder(job.id, _end(seen, job), shares))
    return found


def _share(node: SiteNode, count: int) -> int:
    return node.processors if node.sole else count


def _end(seen: Observation, job: PbsJob) -> float:
    """When its processors are free for us: by its walltime, and not while a reservation has its nodes."""
    start = job.start if job.start is not None else seen.now - (job.used or 0.0)
    end = start + job.limit
    if job.state == "E" or end <= seen.now:
        end = seen.now + LINGER
    return max([end, *(held.end for held in _active(seen) if job.nodes.keys() & held.nodes.keys())])


_Idle = Sequence[tuple[PbsReservation, dict[str, int]]]
"""What active reservations have by node, beside the jobs there."""


def _by_job(seen: Observation, held: Sequence[_Holder], used: Counter[str], idle: _Idle) -> list[RunningJob]:
    """PBS counts what a reservation has as assigned to jobs, too."""
    jobs = [RunningJob(holder.id, holder.processors, holder.end) for holder in held]
    reserved = Counter[str]()
    for _, nodes in idle:
        reserved.update(nodes)
    of_reservations = sum(
        min(reserved[name], max(0, seen.site.nodes[name].allocated - used[name])) for name in reserved
    )
    return with_hidden(jobs, sum(node.allocated for node in seen.site.nodes.values()) - of_reservations)


def _by_node(seen: Observation, held: Iterable[_Holder]) -> list[RunningJob]:
    """Each used machine counts whole, with the last of its jobs and until that one ends."""
    hosts = {name: node.host for name, node in seen.site.nodes.items()}
    explained: dict[str, tuple[float, str]] = {}
    for holder in held:
        for name in holder.nodes:
            latest = explained.get(hosts[name], (0.0, ""))
            explained[hosts[name]] = max(latest, (holder.end, holder.id))
    used = {hosts[name]: (math.inf, HIDDEN) for name, node in seen.site.nodes.items() if node.allocated}
    sizes = seen.site.sizes
    held_by: dict[tuple[float, str], int] = defaultdict(int)
    for host, holding in {**used, **explained}.items():
        held_by[holding] += sizes.get(host, 0)
    return [RunningJob(id, processors, end) for (end, id), processors in sorted(held_by.items())]


def _active(seen: Observation) -> list[PbsReservation]:
    return [held for held in seen.reservations if held.start <= seen.now < held.end]


def _used(held: Iterable[_Holder]) -> Counter[str]:
    """Processors that jobs hold, by node."""
    used: Counter[str] = Counter()
    for holder in held:
        used.update(holder.nodes)
    return used


def _idle(seen: Observation, reservation: PbsReservation, used: Counter[str]) -> dict[str, int]:
    """What a reservation has by node, beside the jobs there."""
    return {
        name: max(0, min(count, seen.site.nodes[name].processors - used[name]))
        for name, count in seen.site.among(reservation.nodes).items()
    }


def _active_reservations(idle: _Idle) -> list[RunningJob]:
    """What reservations keep from us now, beside the jobs that run on their nodes."""
    found = [(each, sum(nodes.values())) for each, nodes in idle]
    return [RunningJob(f"reservation {each.id}", count, each.end) for each, count in found if count]


def _coming_reservations(seen: Observation) -> list[PendingJob]:
    coming = [held for held in seen.reservations if held.start > seen.now]
    sizes = {held.id: sum(seen.site.among(held.nodes).values()) for held in coming}
    return [
        PendingJob(f"reservation {held.id}", sizes[held.id], held.end - held.start, held.start)
        for held in coming
        if sizes[held.id]
    ]


def _pending(seen: Observation) -> list[PendingJob]:
    waiting = [job for job in seen.jobs if job.queue in seen.site.related and is_considered(job)]
    waiting.sort(key=lambda job: (-_queue_priority(seen, job), -job.priority, job.submitted or seen.now))
    size = seen.site.usual_size
    return [each for job in waiting for each in _pending_jobs(seen, job, size)]


def _queue_priority(seen: Observation, job: PbsJob) -> int:
    queue = seen.queues.get(job.queue)
    return queue.priority if queue else 0


def _pending_jobs(seen: Observation, job: PbsJob, size: int) -> list[PendingJob]:
    """One, or of an array as many as it has waiting elements; the plan that PBS shows is the first one's."""
    processors = _wanted(seen, job, size)
    if not processors or not job.elements:
        return []
    first = PendingJob(job.id, processors, job.limit, fresh_plan(job, seen.now))
    others = [PendingJob(f"{job.id}+{n}", processors, job.limit) for n in range(1, job.elements)]
    return [first, *others]


def fresh_plan(job: PbsJob, now: float) -> float | None:
    """PBS leaves a plan standing that it has dropped; one for a time that is past is certainly stale."""
    if job.planned_start is None or job.planned_start < now - LINGER:
        return None
    return max(job.planned_start, now)


def _wanted(seen: Observation, job: PbsJob, size: int) -> int:
    """Processors of the site that a waiting job will take; 0 where it is planned on other nodes.

    Args:
        size: processors of the usual machine.
    """
    wanted = job.processors
    if seen.whole_nodes or job.exclusive:
        wanted = size * max(job.node_count, math.ceil(job.processors / size))
    if job.planned_nodes and fresh_plan(job, seen.now) is not None:
        planned = sum(job.planned_nodes.values())
        here = sum(seen.site.among(job.planned_nodes).values())
        wanted = math.ceil(wanted * here / planned) if planned else wanted
    if job.queue != seen.site.queue.name:
        wanted = min(wanted, seen.site.processors)
    return wanted
