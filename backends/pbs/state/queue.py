"""The rows of jobs, nodes and reservations to the state of a site's queue. Pure.

PBS keeps for a job the processors, memory and GPUs of the vnodes where it runs or is planned, and all of them
only if it is exclusive: others run beside it as long as they like (tests/backends/pbs/test_nodes_live.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need
from backends.hidden import HIDDEN
from backends.pbs.reasons import is_considered
from backends.pbs.rows import NOTHING, Amounts, PbsJob, PbsQueue, PbsReservation
from backends.pbs.state.needs import Needs
from backends.pbs.state.nodes import SiteNodes
from backends.pbs.state.parts import Holding, added, parts_of, processors_of, whole_machines

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
    default_limit: float | None = None
    """Seconds of a job that names none."""
    loses_age: bool = True


def queue_state(seen: Observation) -> QueueState:
    """What a planner needs to know.

    Where only whole nodes are given, a node that is partly in use is wholly so.
    """
    return QueueState(
        now=seen.now,
        processors=seen.site.processors,
        running=tuple(_running(seen)),
        pending=(*_coming_reservations(seen), *_pending(seen)),
        nodes=seen.site.machines,
        default_limit=seen.default_limit,
        loses_age=seen.loses_age,
        owners={
            f"{job.id}+{n}" if n else job.id: job.owner
            for job in seen.jobs
            if job.owner
            for n in range(job.elements)
        },
        limits={
            job.id: job.limit
            for job in seen.jobs
            if job.state == "R" and job.start is not None and job.start + job.limit > seen.now
        },
    )


class _Holder(msgspec.Struct, frozen=True):
    """What a job holds until `end`."""

    id: str
    end: float
    nodes: Holding


class _Reserved(msgspec.Struct, frozen=True):
    """What a reservation that is on has of the site's nodes."""

    id: str
    queue: str
    end: float
    rest: Holding
    """Beside the jobs of its own queue."""
    crowded: frozenset[str]
    """Nodes that have no room for it beside the jobs there: it gets what they leave."""

    def awaits(self, job: PbsJob) -> bool:
        """Whether what the job has is not free when it ends."""
        names = self.rest if job.queue == self.queue else self.crowded
        return not job.nodes.keys().isdisjoint(names)


def _running(seen: Observation) -> list[RunningJob]:
    """Jobs, what is held beyond them, and what reservations keep from us now beside the jobs there."""
    nodes = {job.id: amounts for job in seen.jobs if (amounts := _held_by(seen, job))}
    reserved = [_reserved(seen, each, nodes) for each in _active(seen)]
    jobs = [_Holder(job.id, _end(seen, job, reserved), nodes[job.id]) for job in seen.jobs if job.id in nodes]
    held = [*jobs, *_hidden(seen, added([*nodes.values(), *(each.rest for each in reserved)]))]
    if seen.whole_nodes:
        held = _by_machine(seen.site, held)
    used = added(each.nodes for each in held)
    kept = (_Holder(f"reservation {each.id}", each.end, _left(seen, each.rest, used)) for each in reserved)
    found = (
        RunningJob(each.id, processors_of(each.nodes, seen.site), each.end, parts_of(each.nodes, seen.site))
        for each in (*held, *kept)
    )
    return [job for job in found if job.processors or job.parts]


def _held_by(seen: Observation, job: PbsJob) -> dict[str, Amounts]:
    if job.state not in _HOLDING:
        return {}
    listed = seen.site.listed
    return {
        name: listed[name].has if job.exclusive or listed[name].sole else amounts
        for name, amounts in job.nodes.items()
        if name in listed
    }


def _reserved(seen: Observation, reservation: PbsReservation, jobs: Mapping[str, Holding]) -> _Reserved:
    """Args: jobs: what each holds."""
    queues = {job.id: job.queue for job in seen.jobs}
    inside = added(held for id, held in jobs.items() if queues[id] == reservation.queue)
    rest = {
        name: amounts.beyond(inside.get(name, NOTHING))
        for name, amounts in reservation.nodes.items()
        if name in seen.site.listed
    }
    left = _left(seen, rest, added(jobs.values()))
    crowded = frozenset(name for name, amounts in rest.items() if amounts != left[name])
    return _Reserved(reservation.id, reservation.queue, reservation.end, rest, crowded)


def _left(seen: Observation, wanted: Holding, used: Holding) -> dict[str, Amounts]:
    """As much of it as the nodes have beside what is used."""
    listed = seen.site.listed
    return {
        name: amounts.within(listed[name].has.beyond(used.get(name, NOTHING)))
        for name, amounts in wanted.items()
    }


def _end(seen: Observation, job: PbsJob, reserved: Iterable[_Reserved]) -> float:
    """When its processors are free for us: by its walltime, and not while a reservation waits for them."""
    start = job.start if job.start is not None else seen.now - (job.used or 0.0)
    end = start + job.limit
    if job.state == "E" or end <= seen.now:
        end = seen.now + LINGER
    return max([end, *(each.end for each in reserved if each.awaits(job))])


def _hidden(seen: Observation, known: Holding) -> list[_Holder]:
    """One for all that jobs hold whom nobody shows. PBS counts what a reservation has as assigned, too."""
    nodes = {name: node.allocated.beyond(known.get(name, NOTHING)) for name, node in seen.site.listed.items()}
    held = {name: amounts for name, amounts in nodes.items() if amounts}
    return [_Holder(HIDDEN, math.inf, held)] if held else []


def _by_machine(site: SiteNodes, held: Iterable[_Holder]) -> list[_Holder]:
    """Each used machine counts whole, with the last of its jobs that we see and until that one ends."""
    listed = site.listed
    last: dict[str, tuple[bool, float, str]] = {}
    for each in held:
        holding = (each.id != HIDDEN, each.end, each.id)
        for host in {listed[name].host for name in each.nodes}:
            last[host] = max(holding, last.get(host, holding))
    hosts: dict[tuple[float, str], set[str]] = {}
    for host, (_, end, id) in last.items():
        hosts.setdefault((end, id), set()).add(host)
    return [_Holder(id, end, whole_machines(those, site)) for (end, id), those in sorted(hosts.items())]


def _active(seen: Observation) -> list[PbsReservation]:
    return [held for held in seen.reservations if held.start <= seen.now < held.end]


def _coming_reservations(seen: Observation) -> list[PendingJob]:
    return [
        PendingJob(
            f"reservation {held.id}",
            processors,
            held.end - held.start,
            held.start,
            parts_of(held.nodes, seen.site),
        )
        for held in seen.reservations
        if held.start > seen.now and (processors := processors_of(held.nodes, seen.site))
    ]


def _pending(seen: Observation) -> list[PendingJob]:
    waiting = [job for job in seen.jobs if job.queue in seen.site.related and is_considered(job)]
    waiting.sort(key=lambda job: (-_queue_priority(seen, job), -job.priority, job.submitted or seen.now))
    needs = Needs(seen.site, whole_nodes=seen.whole_nodes)
    sizes = _Sizes(seen.site.processors, seen.site.usual_size)
    return [each for job in waiting for each in _pending_jobs(seen, job, needs, sizes)]


class _Sizes(msgspec.Struct, frozen=True):
    """In processors."""

    site: int
    machine: int
    """The usual one."""


def _queue_priority(seen: Observation, job: PbsJob) -> int:
    queue = seen.queues.get(job.queue)
    return queue.priority if queue else 0


def _pending_jobs(seen: Observation, job: PbsJob, needs: Needs, sizes: _Sizes) -> list[PendingJob]:
    """One, or of an array as many as it has waiting elements; the plan that PBS shows is the first one's."""
    need = needs.of(job)
    wanted = _wanted(seen, job, sizes) if need is None or needs.concern_us(need) else 0
    return [each for n in range(job.elements) if (each := _pending_job(seen, job, n, wanted, need))]


def _pending_job(seen: Observation, job: PbsJob, n: int, wanted: int, need: Need | None) -> PendingJob | None:
    """The nth element; None where it will be on nodes of others."""
    plan = fresh_plan(job, seen.now) if n == 0 else None
    id = f"{job.id}+{n}" if n else job.id
    if plan is not None and job.planned_nodes:
        nodes = _planned(seen, job)
        wanted = processors_of(nodes, seen.site)
        return PendingJob(id, wanted, job.limit, plan, parts_of(nodes, seen.site), need) if wanted else None
    return PendingJob(id, wanted, job.limit, plan, (), need) if wanted else None


def _planned(seen: Observation, job: PbsJob) -> Holding:
    """What a job will hold where PBS plans it."""
    listed = seen.site.listed
    nodes = {name: amounts for name, amounts in job.planned_nodes.items() if name in listed}
    if seen.whole_nodes:
        return whole_machines({listed[name].host for name in nodes}, seen.site)
    return {
        name: listed[name].has if job.exclusive or listed[name].exclusive else amounts
        for name, amounts in nodes.items()
    }


def fresh_plan(job: PbsJob, now: float) -> float | None:
    """PBS leaves a plan standing that it has dropped; one for a time that is past is certainly stale."""
    if job.planned_start is None or job.planned_start < now - LINGER:
        return None
    return max(job.planned_start, now)


def _wanted(seen: Observation, job: PbsJob, sizes: _Sizes) -> int:
    """Processors of the site that a waiting job will take."""
    wanted = job.processors
    if seen.whole_nodes or job.exclusive:
        wanted = sizes.machine * max(job.node_count, math.ceil(job.processors / sizes.machine))
    return wanted if job.queue == seen.site.queue.name else min(wanted, sizes.site)
