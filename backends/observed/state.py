"""The rows of jobs, nodes and reservations to the state of a site's queue. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

import msgspec

from adaptor.model import Allowed, PendingJob, QueueState, RunningJob
from adaptor.resources import Part
from backends.observed.remembered import Unchanged
from backends.observed.rows import NOTHING, Amounts, JobRow, ReservationRow, named_as
from backends.observed.site import HeldByNode, SiteNode, SiteNodes, added

LINGER = 60.0  # seconds for which a job is taken to hold its nodes that is past its limit or about to end


class KnownJobs:
    """Rows that the last look at a site made of the jobs."""

    def __init__(self) -> None:
        self.rows = Unchanged[JobRow]()  # for the parsers
        self.held = Unchanged[dict[str, Amounts]]()
        self.running = Unchanged[RunningJob]()
        self.pending = Unchanged[tuple[PendingJob, ...]]()


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    site: SiteNodes
    jobs: Sequence[JobRow]
    reservations: Sequence[ReservationRow] = ()
    """Reservations other than the one that the site itself uses."""
    whole_nodes: bool = False
    """Whether a node that is partly in use takes no request of ours."""
    memory_step: int = 1
    allowed: Allowed = Allowed()
    unknown: Sequence[str] = ()
    """Sentences on answers that the backend does not know, as in `QueueState`; so are the two fields
    before."""
    known: KnownJobs = msgspec.field(default_factory=KnownJobs)


def queue_state(seen: Observation) -> QueueState:
    """State of the queue, for planners.

    Where only whole nodes are given, a node that is partly in use is wholly so.
    """
    site = seen.site
    under = (
        site.name,
        site.memory_counted,
        seen.whole_nodes,
        *[node.lasting for node in site.listed.values()],
    )
    return QueueState(
        now=seen.now,
        processors=seen.site.processors,
        running=tuple(_running(seen, under)),
        pending=(*_coming_reservations(seen), *_pending(seen, under)),
        nodes=seen.site.machines,
        default_memory=seen.site.default_memory,
        owners={id: job.user for job in seen.jobs if job.user for id in job.elements},
        limits={
            job.id: job.limit for job in seen.jobs if job.state == "running" and seen.now < job.end < math.inf
        },
        memory_step=seen.memory_step,
        processor_step=seen.site.processor_step,
        most_memory=seen.site.most_memory,
        allowed=seen.allowed,
        unknown=tuple(seen.unknown),
    )


def end_of(job: JobRow, now: float) -> float:
    """Epoch seconds at which a job gives back what it holds, by its limit."""
    return now + LINGER if job.state == "ending" or job.end <= now else job.end


def kept(held: ReservationRow, site: SiteNodes, *, whole_nodes: bool) -> dict[str, Amounts]:
    """All of the site's nodes in service that only the reservation's jobs get while it lasts.

    Schedulers name what was asked for, however exclusively its nodes are reserved.
    """
    if held.machines or whole_nodes:
        return {**dict(_given(held, site)), **site.whole_machines(held.nodes)}
    return dict(_given(held, site))


def _given(held: ReservationRow, site: SiteNodes) -> Iterator[tuple[str, Amounts]]:
    for name, amounts in held.nodes.items():
        if (node := site.listed.get(name)) is not None:
            whole = amounts is None or held.exclusive or node.exclusive
            yield name, node.has if amounts is None or whole else _as_counted(site, node, amounts)


class _Holder(msgspec.Struct, frozen=True):
    """Amounts that a job holds until `end`."""

    id: str
    end: float
    nodes: HeldByNode


class _Reserved(msgspec.Struct, frozen=True):
    """Amounts that an active reservation has of the site's nodes."""

    row: ReservationRow
    rest: HeldByNode
    """Amounts in addition to the jobs of its own queue."""
    crowded: frozenset[str]
    """Nodes that have no room for it next to the jobs there: it gets what they leave."""

    def awaits(self, job: JobRow) -> bool:
        """Whether what the job has is not free when it ends."""
        names = self.rest if self.row.queue in job.queues else self.crowded
        return not frozenset(job.held_nodes).isdisjoint(names)


def _running(seen: Observation, under: object) -> list[RunningJob]:
    """Jobs, what is held beyond them, and what reservations keep from us now in addition to the jobs
    there.

    Args:
        under: what decides, besides a job, what is made of it.
    """
    site = seen.site
    there = [job for job in seen.jobs if job.nodes or job.holds]
    all_held = seen.known.held.of(partial(_held_by, seen), there, under=under)
    holding = [(job, amounts) for job, amounts in zip(there, all_held, strict=True) if amounts]
    jobs = added(amounts for _, amounts in holding)
    active = (held for held in seen.reservations if held.start <= seen.now < held.end)
    reserved = [_reserved(seen, held, holding, jobs) for held in active]
    held = [_Holder(job.id, _end(seen, job, reserved), amounts) for job, amounts in holding]
    known = added([jobs, *(each.rest for each in reserved if each.row.reported)])
    guessed = any(job.holds is None for job, _ in holding) and not seen.whole_nodes
    held += _hidden(site, known, guessed=guessed)
    if seen.whole_nodes:
        held = _by_machine(site, held)
    used = added(each.nodes for each in held) if reserved else {}
    held += [
        _Holder(f"reservation {each.row.name}", each.row.end, _left(site, each.rest, used))
        for each in reserved
    ]
    own = {job.id for job in there if site.name in job.queues}
    held = _within_bounds(site, held, own)
    found = seen.known.running.of(
        lambda id, end, nodes: RunningJob(id, site.processors_of(nodes), end, site.parts_of(nodes)),
        *([getattr(each, name) for each in held] for name in _Holder.__struct_fields__),
        under=under,
    )
    return [job for job in found if job.processors or job.parts]


def _within_bounds(site: SiteNodes, held: list[_Holder], own: Collection[str]) -> list[_Holder]:
    """Amounts that jobs hold of what the site's requests may have of each node.

    Where a bound is below what a node has, jobs of others first hold what is beyond the bound; so do jobs of
    the site's own queue where the bound is one of each request. Of these jobs, those that stay longest.
    """
    bounds = {name: node for name, node in site.listed.items() if node.most is not None}
    if not bounds:
        return held
    beyond = {name: node.has.beyond(node.offered) for name, node in bounds.items()}
    nodes = [dict(holder.nodes) for holder in held]
    for place in sorted(range(len(held)), key=lambda place: -held[place].end):
        for name in nodes[place].keys() & bounds.keys():
            has, spare, node = nodes[place][name], beyond[name], bounds[name]
            counts = node.most_of_queue and held[place].id in own
            given = Amounts(
                0 if counts else min(has.processors, spare.processors), min(has.memory, spare.memory)
            )
            beyond[name] = spare.beyond(given)
            nodes[place][name] = has.beyond(given).within(node.offered)
    return [
        _Holder(holder.id, holder.end, {name: amounts for name, amounts in rest.items() if amounts})
        for holder, rest in zip(held, nodes, strict=True)
    ]


def _held_by(seen: Observation, job: JobRow) -> dict[str, Amounts]:
    """Amounts that a job holds of each listed node."""
    listed = seen.site.listed
    there = [listed[name] for name in job.held_nodes if name in listed]
    if job.exclusive:
        return {node.name: node.has for node in there}
    if job.holds is None:
        return _even(job, there)
    held = (
        (node.name, node.has if node.sole else _as_counted(seen.site, node, job.holds[node.name]))
        for node in there
    )
    return {name: amounts for name, amounts in held if amounts}


def _even(job: JobRow, there: Sequence[SiteNode]) -> dict[str, Amounts]:
    if not there:
        return {}
    share = math.ceil(job.processors * len(there) / len(job.nodes))
    least, more = divmod(share, len(there))
    return {node.name: Amounts(least + (number < more)) for number, node in enumerate(there)}


def _as_counted(site: SiteNodes, node: SiteNode, amounts: Amounts) -> Amounts:
    memory = amounts.memory if site.memory_counted else 0
    return Amounts(amounts.processors, memory, named_as(amounts.gpus, node.has.gpus))


def _reserved(
    seen: Observation,
    held: ReservationRow,
    holding: Iterable[tuple[JobRow, HeldByNode]],
    jobs: HeldByNode,
) -> _Reserved:
    inside = added(amounts for job, amounts in holding if held.queue in job.queues)
    nodes = kept(held, seen.site, whole_nodes=seen.whole_nodes)
    rest = {name: amounts.beyond(inside.get(name, NOTHING)) for name, amounts in nodes.items()}
    left = _left(seen.site, rest, jobs)
    return _Reserved(held, rest, frozenset(name for name, amounts in rest.items() if amounts != left[name]))


def _left(site: SiteNodes, wanted: HeldByNode, used: HeldByNode) -> dict[str, Amounts]:
    """The wanted amounts, at most what the nodes have next to the used amounts."""
    return {
        name: amounts.within(site.listed[name].has.beyond(used.get(name, NOTHING)))
        for name, amounts in wanted.items()
    }


def _end(seen: Observation, job: JobRow, reserved: Sequence[_Reserved]) -> float:
    """Epoch seconds at which the job's processors are free for us: by its limit, and not while a reservation
    waits for them."""
    end = end_of(job, seen.now)
    return max([end, *(held.row.end for held in reserved if held.awaits(job))]) if reserved else end


def _hidden(site: SiteNodes, known: HeldByNode, *, guessed: bool) -> list[_Holder]:
    """One for all that is held beyond what is known; none where there is nothing.

    Args:
        guessed: whether the parts of some jobs are not known: then a node may seem to hold too little as
            another holds too much.
    """
    nodes = {
        name: node.held.beyond(named)
        for name, node in site.listed.items()
        if node.held != (named := known.get(name, NOTHING))
    }
    if guessed:
        too_much = sum(
            known.get(name, NOTHING).beyond(node.held).processors for name, node in site.listed.items()
        )
        for name, amounts in nodes.items():
            given = min(too_much, amounts.processors)
            too_much -= given
            nodes[name] = Amounts(amounts.processors - given, amounts.memory, amounts.gpus)
    held = {name: amounts for name, amounts in nodes.items() if amounts}
    return [_Holder(HIDDEN, math.inf, held)] if held else []


def _by_machine(site: SiteNodes, held: Iterable[_Holder]) -> list[_Holder]:
    """Holders of whole used machines, each with the last of its jobs that we see, and until that one ends."""
    last: dict[str, tuple[bool, float, str]] = {}
    for holder in held:
        holding = (holder.id != HIDDEN, holder.end, holder.id)
        for host in {site.listed[name].host for name in holder.nodes}:
            last[host] = max(holding, last.get(host, holding))
    nodes: dict[tuple[float, str], dict[str, Amounts]] = {}
    for name, node in site.listed.items():
        if node.host in last:
            _, end, id = last[node.host]
            nodes.setdefault((end, id), {})[name] = node.has
    return [_Holder(id, end, those) for (end, id), those in sorted(nodes.items(), key=lambda item: item[0])]


def _coming_reservations(seen: Observation) -> list[PendingJob]:
    found = []
    for held in seen.reservations:
        nodes = kept(held, seen.site, whole_nodes=seen.whole_nodes) if held.start > seen.now else {}
        nodes = {name: each.within(seen.site.listed[name].offered) for name, each in nodes.items()}
        if parts := seen.site.parts_of(nodes):
            processors, length = seen.site.processors_of(nodes), held.end - held.start
            found.append(PendingJob(f"reservation {held.name}", processors, length, held.start, parts))
    return found


def _pending(seen: Observation, under: object) -> Iterator[PendingJob]:
    """Waiting jobs in the order in which the scheduler considers them. `under`: as for `_running`."""
    related = frozenset(seen.site.members)
    usual, most = seen.site.usual_size, seen.site.processors
    waiting = sorted((job for job in seen.jobs if job.waits), key=lambda job: job.place)
    found = seen.known.pending.of(
        lambda job, _: tuple(_pending_jobs(seen, job, usual, most)) if _concerns(job, related) else (),
        waiting,
        # A plan that is past counts from now on.
        [None if job.planned_start is None else seen.now for job in waiting],
        under=(under, related),
    )
    return chain.from_iterable(found)


def _concerns(job: JobRow, related: frozenset[str]) -> bool:
    """Whether a waiting job may get what is ours, or what jobs of related queues use."""
    return not related.isdisjoint(job.queues) and (job.need is None or job.need.nodes != frozenset())


def _pending_jobs(seen: Observation, job: JobRow, usual: int, most: int) -> Iterator[PendingJob]:
    """One, or of an array as many as may start; those that will be on nodes of others are left out.

    Args:
        usual: processors of most of the machines.
        most: processors of the site.
    """
    wanted = _wanted(seen, job, usual)
    own = seen.site.name in job.queues
    planned = None if job.planned_start is None else max(job.planned_start, seen.now)
    parts: tuple[Part, ...] = ()
    there = wanted
    if planned is not None and job.plan:
        nodes = _planned(seen, job)
        if any(node.most is not None for node in seen.site.listed.values()):
            nodes = {name: each.within(seen.site.listed[name].offered) for name, each in nodes.items()}
        parts = seen.site.parts_of(nodes)
        if None in job.plan.values():
            ours = sum(name in seen.site.listed and seen.site.listed[name].ours for name in job.plan)
            there = math.ceil(wanted * ours / len(job.plan))
        else:
            there = seen.site.processors_of(nodes)
    if not own:
        wanted, there = min(wanted, most), min(there, most)
    for number, id in enumerate(job.elements):
        if number == 0 and (there or parts):
            yield PendingJob(id, there, job.limit, planned, parts, job.need)
        elif number and wanted:
            yield PendingJob(id, wanted, job.limit, need=job.need)


def _wanted(seen: Observation, job: JobRow, usual: int) -> int:
    """Processors that a waiting job will take, on whichever nodes."""
    if seen.whole_nodes or job.exclusive:
        return usual * max(job.node_count, math.ceil(job.processors / usual))
    return job.processors


def _planned(seen: Observation, job: JobRow) -> dict[str, Amounts]:
    """Amounts that a job will hold of the listed nodes for which it is planned."""
    listed = seen.site.listed
    there = [listed[name] for name in job.plan if name in listed]
    if seen.whole_nodes:
        return seen.site.whole_machines(node.name for node in there)
    nodes = {node.name: job.plan[node.name] for node in there}
    return {
        name: listed[name].has
        if amounts is None or job.exclusive or listed[name].exclusive
        else _as_counted(seen.site, listed[name], amounts)
        for name, amounts in nodes.items()
    }


HIDDEN = "hidden"
"""The id that stands for jobs that we do not see: the scheduler hides them (Slurm's `PrivateData=jobs`, PBS's
`query_other_jobs = False`), or they came between two of our questions."""


def hidden_processors(state: QueueState) -> int:
    return sum(job.processors for job in state.running if job.id == HIDDEN)


class SecondLook:
    """Looks again when more is hidden than the last time: what is hidden then is hidden from us."""

    def __init__(self) -> None:
        self._hidden = 0

    def state(self, look: Callable[[], QueueState]) -> QueueState:
        """The result of `look`, looked at again if more processors are hidden than before. Raises what `look`
        raises."""
        state = look()
        if hidden_processors(state) > self._hidden:
            state = look()
        self._hidden = hidden_processors(state)
        return state
