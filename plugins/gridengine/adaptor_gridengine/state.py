"""The rows of qstat to the nodes of a queue, to common rows, and to the state of the queue. Pure.

Hosts most often limit the slots of all their queues together. Where one does not, each of its queues has
slots of its own, and jobs in the others take nothing from ours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from adaptor.model import Bound, QueueState, Request
from adaptor.resources import Need, Node
from adaptor_gridengine.parse import Cell, GridJob, GridQueue, Instance, Pe
from backends.base import PartitionClosed
from backends.ceilings import Ceilings
from backends.observed import state as observed
from backends.observed.rows import Amounts, JobRow, ReservationRow
from backends.observed.site import SiteNode, SiteNodes

_MOST_ELEMENTS = 2000
"""Most elements of an array that run at once by Grid Engine's default (`max_aj_instances`)."""

_UNKNOWN = "unknown job state '{}' (qstat): what such jobs hold counts as held until their limit"


class GridSeen(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`, whatever the queue."""

    now: float
    cell: Cell
    instances: Sequence[Instance]
    jobs: Sequence[GridJob] = ()
    reservations: Sequence[ReservationRow] = ()

    def queue(self, name: str | None) -> GridQueue:
        """The queue of this name; else the only one, or `all.q`.

        Raises PartitionClosed: there is no such queue, or several and none is named.
        """
        queues = self.cell.queues
        chosen = name or (next(iter(queues)) if len(queues) == 1 else "all.q")
        if chosen not in queues:
            there = ", ".join(sorted(queues)) or "none at all"
            wrong = f"has no queue {name}" if name else "has several queues: set `partition` (the queue)"
            raise PartitionClosed(f"Grid Engine {wrong}; there are: {there}")
        return queues[chosen]

    def nodes(self, queue: str) -> SiteNodes:
        """The hosts of a queue."""
        own = [each for each in self.instances if each.queue == queue]
        used, memory = Counter[str](), Counter[str]()
        for each in self.instances:
            used[each.host] += each.used
        for job in self.jobs:
            for (_, host), slots in job.parts.items():
                memory[host] += slots * job.memory
        nodes = {each.host: _node(each, used[each.host], memory[each.host]) for each in own}
        shared = {each.host for each in own if each.host_free is not None}
        members: dict[str, frozenset[str]] = {}
        for each in self.instances:
            if each.queue == queue or each.host in shared:
                members[each.queue] = members.get(each.queue, frozenset()) | {each.host}
        serving = {each.host for each in own if each.in_service}
        default = self.cell.default_memory
        return SiteNodes(
            name=queue,
            listed={name: node for name, node in nodes.items() if name in serving},
            members=members,
            machines=tuple(
                Node(
                    name=name,
                    processors=node.has.processors,
                    memory=None if default is None else node.has.memory,
                    in_service=name in serving,
                )
                for name, node in nodes.items()
            ),
            memory_counted=default is not None,
            default_memory=default,
        )


def _node(own: Instance, used: int, memory: int) -> SiteNode:
    """Args: used: slots, and `memory` in bytes, that jobs in all queues of the host have."""
    size, free = own.slots, own.slots - own.used
    if own.host_free is not None:
        size, free = min(size, own.host_free + used), min(free, own.host_free)
    held = Amounts(max(0, size - free), memory if own.memory_free is not None else 0)
    has = Amounts(size, held.memory + (own.memory_free or 0))
    return SiteNode(name=own.host, host=own.host, has=has, held=held)


def queue_state(seen: GridSeen, queue: GridQueue) -> QueueState:
    """State of a queue, for planners."""
    site = seen.nodes(queue.name)
    return observed.queue_state(
        observed.Observation(
            now=seen.now,
            site=site,
            jobs=[_wanting(job_row(job, seen, site), job, seen, site) for job in seen.jobs],
            reservations=seen.reservations,
            unknown=sorted({_UNKNOWN.format(job.state) for job in seen.jobs if state_of(job) == "unknown"}),
        )
    )


def state_of(job: GridJob) -> Literal["waiting", "running", "ending", "suspended", "unknown"]:
    """Meaning of the letters of a job's state (sge_status(5))."""
    letters = set(job.state)
    if not letters or letters - set("qwhERrtsSTNd"):
        return "unknown"
    if "q" in letters:
        return "waiting"
    return "ending" if "d" in letters else "suspended" if letters & set("sSTN") else "running"


def job_row(job: GridJob, seen: GridSeen, site: SiteNodes) -> JobRow:
    """A job other than the site's requests."""
    state = state_of(job)
    queues = tuple(dict.fromkeys(queue for queue, _ in job.parts)) or _open_to(job, seen)
    known = [seen.cell.queues[name].seconds for name in queues if name in seen.cell.queues]
    limit = min(job.limit, (min if job.parts else max)(known, default=math.inf))
    holds: dict[str, Amounts] = {}
    for (queue, host), slots in job.parts.items():
        counted = slots if host in site.members.get(queue, ()) else 0
        holds[host] = Amounts(counted, slots * job.memory) + holds.get(host, Amounts())
    waits = state == "waiting"
    return JobRow(
        id=job.id,
        elements=tuple(job.elements(_MOST_ELEMENTS)) if waits else (job.id,),
        user=job.owner,
        queues=queues,
        state=state,
        limit=limit,
        end=math.inf if job.start is None or state == "suspended" else job.start + limit,
        processors=job.slots,
        nodes=tuple(holds),
        holds=holds,
        considered=waits and not set(job.state) & set("hE"),
        place=(-job.priority, int(job.number) if job.number.isdecimal() else 0),
    )


def _open_to(job: GridJob, seen: GridSeen) -> tuple[str, ...]:
    """The queues from which a waiting job may start."""
    return tuple(
        name
        for name, queue in seen.cell.queues.items()
        if (not job.pe or any(fnmatchcase(pe, job.pe) for pe in queue.pes))
        and (math.isinf(job.limit) or job.limit <= queue.seconds)
        and (not job.wants or any(fnmatchcase(name, want.partition("@")[0]) for want in job.wants))
    )


def _wanting(row: JobRow, job: GridJob, seen: GridSeen, site: SiteNodes) -> JobRow:
    """The row with the needs of a waiting job on each host."""
    if row.state != "waiting":
        return row
    pe = next((pe for name, pe in seen.cell.pes.items() if fnmatchcase(name, job.pe)), None)
    chunk = job.slots if pe is None or pe.rule == "$pe_slots" else pe.per_host or 1
    every = frozenset(machine.name for machine in site.machines)
    found = {host for name in row.queues for host in site.members.get(name, ()) if host in every}
    # `@@group` may be any host: its members are not known.
    patterns = [want.partition("@")[2] or "*" for want in job.wants] or ["*"]
    if not any(pattern.startswith("@") for pattern in patterns):
        found = {host for host in found if any(fnmatchcase(host, pattern) for pattern in patterns)}
    memory = job.memory or seen.cell.default_memory or 0
    need = Need(
        chunks=math.ceil(job.slots / chunk),
        processors=chunk,
        memory=chunk * memory,
        nodes=None if found == every else frozenset(found),
    )
    return msgspec.structs.replace(row, need=need)


def ceilings(cell: Cell, queue: GridQueue, nodes: SiteNodes) -> Ceilings:
    """Bounds on the number and the size of the site's requests."""
    name, total = f"queue {queue.name}", sum(machine.processors for machine in nodes.machines)
    widest = max((_reach(pe, nodes) for pe in pes_of(cell, queue)), default=1)
    slots = Bound(total, f"all slots of {name}"), Bound(widest, f"parallel environments of {name}")
    return Ceilings(
        requests=Bound(cell.max_jobs, "max_u_jobs" if cell.max_jobs < math.inf else "no limit"),
        processors=min(slots),
        seconds=Bound(queue.seconds, f"h_rt of {name}" if queue.seconds < math.inf else "no limit"),
        whole=total,
        node=max(nodes.sizes.values(), default=nodes.usual_size),
    )


def pes_of(cell: Cell, queue: GridQueue) -> list[Pe]:
    return [cell.pes[name] for name in queue.pes if name in cell.pes]


def _reach(pe: Pe, nodes: SiteNodes) -> int:
    """Slots that a request can have in it at most."""
    if pe.rule == "$pe_slots":
        return min(pe.slots, max(nodes.sizes.values(), default=1))
    return pe.slots if pe.controls else min(pe.slots, pe.per_host or 1)


def refusal(request: Request, cell: Cell, queue: GridQueue, nodes: SiteNodes) -> str:
    """Why a queue never takes a request, with the way out; empty where it may."""
    known = ceilings(cell, queue, nodes)
    if request.p > (most := known.processors).value:
        return (
            f"{request.p} processors were asked for, but Grid Engine gives at most {most.value:g} "
            f"({most.source}): lower `limits.max_proc` of this site"
        )
    if request.tr > known.seconds.value:
        return f"queue {queue.name} takes at most {queue.seconds:g} s: lower `limits.max_tr` of this site"
    return ""
