"""The nodes of a site: which a queue uses, which are in service, and what they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from adaptor.resources import Gpus, Node
from backends.base import PartitionClosed, SchedulerError
from backends.describing import size_in_words
from backends.observed.rows import Amounts, ReservationRow, named_as
from backends.observed.site import SiteNode, SiteNodes
from backends.pbs.constraints import PbsShape
from backends.pbs.rows import PbsNode, PbsQueue


def machines_of(nodes: Iterable[PbsNode], ours: Collection[str] | None = None) -> tuple[Node, ...]:
    """Machines with processors, in service or not; the vnodes of a machine together.

    While some vnodes of a machine are out of service, it has the amounts of the rest.

    `ours`: the machines that the site's requests may use; None: all.
    """
    machines: dict[str, list[PbsNode]] = {}
    for node in nodes:
        machines.setdefault(node.host, []).append(node)
    found = (_machine(host, vnodes, ours is None or host in ours) for host, vnodes in machines.items())
    return tuple(node for node in found if node.processors)


def _machine(host: str, vnodes: Sequence[PbsNode], ours: bool) -> Node:
    serving = [each for each in vnodes if each.in_service]
    in_service = any(each.processors for each in serving)
    those = serving if in_service else vnodes
    found: Counter[str] = Counter()
    for node in those:
        found[node.gpu_type] += node.gpus
    return Node(
        name=host,
        processors=sum(each.processors for each in those),
        memory=memory_of(those),
        gpus=tuple(sorted((type, count) for type, count in found.items() if count > 0)),
        in_service=in_service,
        ours=ours,
    )


def memory_of(vnodes: Iterable[PbsNode]) -> int | None:
    """Bytes of all together, where any tells."""
    told = [node.memory for node in vnodes if node.memory is not None]
    return sum(told) if told else None


def misfit(shape: PbsShape, machines: Iterable[Node], queue: str) -> str:
    """Why a request of this shape would never start, even with all nodes idle; empty where it would.

    `machines`: of `queue`; without any, nothing is known.
    """
    ours = [node for node in machines if node.ours]
    if not ours or shape.node:
        return ""
    held = shape.held_by(ours)
    if held >= shape.count:
        return ""
    if held == 0:
        sizes = sorted({(node.processors, node.memory, node.gpus) for node in ours}, key=_largest_first)
        there = " or ".join(size_in_words(*size) for size in sizes)
        return f"no node of queue {queue} has {shape.wanted}: its nodes have {there}; ask for less per task"
    return (
        f"{shape.count} × {shape.wanted} were asked for, each on one node, but all nodes of queue {queue} "
        f"together hold {held}: lower `limits.max_proc` of this site to {held * shape.part.processors}"
    )


def _largest_first(size: tuple[int, int | None, Gpus]) -> tuple[int, int, bool, Gpus]:
    processors, memory, gpus = size
    return -processors, -(memory or 0), memory is None, gpus


_FULL = frozenset({"job-exclusive", "job-busy"})
"""States of nodes on which nothing is left, however few processors their jobs asked for."""


class QueueNodes(SiteNodes, frozen=True, kw_only=True):
    """The nodes that a queue uses; those where only jobs of related queues run are listed, and not ours."""

    queue: PbsQueue
    total: int  # processors of all its nodes, in service or not
    exclusive: bool  # whether jobs get whole nodes only
    traits: dict[tuple[str, str], frozenset[str]]
    """The machines on which a resource has a value (see `PbsNode.traits`)."""


def find_site(
    nodes: Collection[PbsNode],
    queues: Mapping[str, PbsQueue],
    name: str | None,
    reservations: Collection[ReservationRow] = (),
    wants: Mapping[str, str] = {},
) -> QueueNodes:
    """The nodes that jobs of a queue may use; of a routing queue, those of all its destinations.

    A reservation's queue uses what is set aside for it.

    `wants`: what the site's own requests ask of their nodes (`backends.pbs.constraints`).

    Raises SchedulerError: there is no such queue.
    """
    queue = find_queue(queues, name)
    reserved = any(each.queue == queue.name for each in reservations)
    able = used_by(queue, nodes, queues, reservations)
    used = [node for node in able if has_traits(node, wants)]
    owners = _owners(nodes)
    related = frozenset({queue.name}) if reserved else _related(used, owners, queues)
    hosts = {node.host for node in used}
    served = {} if reserved else {each: _hosts(queues[each], nodes, queues, owners) for each in related}
    around = frozenset[str]().union(*served.values()) - hosts
    others = [node for node in nodes if node.host in around]
    known = {node.name: node for node in (*used, *others)}
    listed = [known[node.name] for node in nodes if node.name in known]
    machines = machines_of(listed, hosts)
    if reserved:
        served = {queue.name: frozenset(machine.name for machine in machines)}
    return QueueNodes(
        name=queue.name,
        listed={node.name: _node(node, ours=node.host in hosts) for node in listed if node.in_service},
        members=served,
        machines=machines,
        hosts={node.name: node.host for node in nodes},
        queue=queue,
        total=sum(node.processors for node in used),
        exclusive=bool(used) and all(node.exclusive for node in used),
        traits=_traits(listed),
    )


def has_traits(node: PbsNode, wants: Mapping[str, str]) -> bool:
    """Whether a node has each of these values."""
    return all(value in node.traits.get(trait, frozenset()) for trait, value in wants.items())


def _hosts(
    queue: PbsQueue, nodes: Iterable[PbsNode], queues: Mapping[str, PbsQueue], owners: Collection[str]
) -> frozenset[str]:
    """The machines on which jobs of a queue may run."""
    users = execution_queues(queue, queues)
    return frozenset(node.host for user in users for node in served(nodes, user, owners))


def _traits(nodes: Iterable[PbsNode]) -> dict[tuple[str, str], frozenset[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for node in nodes:
        for trait, values in node.traits.items():
            for value in values:
                found.setdefault((trait, value), set()).add(node.host)
    return {key: frozenset(hosts) for key, hosts in found.items()}


def used_by(
    queue: PbsQueue,
    nodes: Collection[PbsNode],
    queues: Mapping[str, PbsQueue],
    reservations: Collection[ReservationRow] = (),
) -> list[PbsNode]:
    """The nodes, in service or not, on which jobs of a queue may run."""
    own = next((each for each in reservations if each.queue == queue.name), None)
    if own is not None:
        return [_reserved(node, own.nodes[node.name] or node.has) for node in nodes if node.name in own.nodes]
    owners, users = _owners(nodes), execution_queues(queue, queues)
    there = {node.name for user in users for node in served(nodes, user, owners)}
    return [node for node in nodes if node.name in there]


def _reserved(node: PbsNode, amounts: Amounts) -> PbsNode:
    """The node as large as it is for jobs of a reservation; memory that was not reserved is not counted."""
    return msgspec.structs.replace(
        node,
        processors=amounts.processors,
        memory=amounts.memory or None,
        gpus=sum(count for _, count in amounts.gpus),
    )


def _owners(nodes: Iterable[PbsNode]) -> frozenset[str]:
    """The queues that have nodes of their own."""
    return frozenset(node.queue for node in nodes if node.queue is not None)


def find_queue(queues: Mapping[str, PbsQueue], name: str | None) -> PbsQueue:
    """The queue of this name. Raises PartitionClosed: there is none. SchedulerError: no name, and no default
    queue."""
    if name is None:
        raise SchedulerError("PBS has no default queue: set `partition` (the queue) for this site")
    if name not in queues:
        there = ", ".join(sorted(queues)) or "none at all"
        raise PartitionClosed(f"PBS has no queue {name}; there are: {there}")
    return queues[name]


def execution_queues(queue: PbsQueue, queues: Mapping[str, PbsQueue]) -> list[PbsQueue]:
    """The queues in which jobs of this queue run: itself, or where a routing queue leads in the end."""
    found: dict[str, PbsQueue] = {}
    open_ends, seen = [queue], set()
    while open_ends:
        here = open_ends.pop(0)
        if here.name in seen:
            continue
        seen.add(here.name)
        if here.routes_to:
            open_ends += [queues[name] for name in here.routes_to if name in queues]
        else:
            found[here.name] = here
    return list(found.values())


def served(nodes: Iterable[PbsNode], queue: PbsQueue, owners: Collection[str]) -> Iterator[PbsNode]:
    """The nodes on which jobs of an execution queue may run.

    `owners`: the queues that have nodes of their own, and use no others.
    """
    name, partition, wants = queue.name, queue.partition, queue.wants
    if name in owners:
        return (node for node in nodes if node.queue == name)
    return (
        node
        for node in nodes
        if node.queue == name
        or (node.queue is None and node.partition == partition and (not wants or has_traits(node, wants)))
    )


def _related(
    used: Collection[PbsNode], owners: Collection[str], queues: Mapping[str, PbsQueue]
) -> frozenset[str]:
    """All queues whose jobs may come to these nodes, routing queues included."""
    direct = {
        queue.name
        for queue in queues.values()
        if not queue.routes_to and any(True for _ in served(used, queue, owners))
    }
    routing = {
        queue.name
        for queue in queues.values()
        if queue.routes_to and direct.intersection(each.name for each in execution_queues(queue, queues))
    }
    return frozenset(direct | routing)


def _node(row: PbsNode, *, ours: bool) -> SiteNode:
    return SiteNode(
        name=row.name,
        host=row.host,
        has=row.has,
        held=_held(row),
        sole="job-exclusive" in row.states and len(row.jobs) == 1,
        exclusive=row.exclusive,
        ours=ours,
    )


def _held(row: PbsNode) -> Amounts:
    """Amounts that cannot be had at the moment."""
    if "job-exclusive" in row.states:
        return row.has
    gpus = named_as(row.assigned.gpus, row.has.gpus)
    taken = msgspec.structs.replace(row.assigned, gpus=gpus).within(row.has)
    return msgspec.structs.replace(taken, processors=row.processors) if row.states & _FULL else taken
