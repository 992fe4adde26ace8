"""The nodes of a site: which a queue uses, which are in service, and how many processors they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from adaptor.model import NodeSize
from backends.base import SchedulerError
from backends.pbs.rows import PbsNode, PbsQueue, PbsReservation
from backends.pbs.sizes import node_sizes

_OUT = frozenset(
    {
        "busy",
        "down",
        "initializing",
        "maintenance",
        "offline",
        "provisioning",
        "resume-pending",
        "sleep",
        "stale",
        "state-unknown",
        "unknown",
        "unresolvable",
        "wait-provisioning",
    }
)
"""States of nodes that take no new work, whether or not jobs still run there (pbs_node_attributes(7B))."""
_FULL = frozenset({"job-exclusive", "job-busy"})
"""States of nodes on which nothing is left, however few processors their jobs asked for."""


class SiteNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node (or vnode) in service."""

    name: str
    host: str
    processors: int
    allocated: int
    sole: bool
    """Whether one job has all of it, however little it asked for."""
    memory: int | None
    """Bytes."""


class SiteNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes in service that a queue uses, and all queues whose jobs may run on one of them."""

    queue: PbsQueue
    nodes: dict[str, SiteNode]
    related: frozenset[str]
    total: int
    """Processors of all its nodes, in service or not."""
    exclusive: bool
    """Whether jobs get whole nodes only."""
    machines: tuple[NodeSize, ...] = ()
    """All its nodes by size, in service or not."""

    @property
    def processors(self) -> int:
        return sum(node.processors for node in self.nodes.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Processors by machine: the vnodes of one together."""
        found: Counter[str] = Counter()
        for node in self.nodes.values():
            found[node.host] += node.processors
        return {host: size for host, size in found.items() if size}

    def memory_of(self, host: str) -> int:
        """Bytes of a machine; 0 where it is not told."""
        return sum(node.memory or 0 for node in self.nodes.values() if node.host == host)

    @property
    def usual_size(self) -> int:
        """Processors of most of the machines; 1 where there are none."""
        sizes = Counter(self.sizes.values())
        return sizes.most_common(1)[0][0] if sizes else 1

    def among(self, held: Mapping[str, int]) -> dict[str, int]:
        """Of processors by node, those on nodes of the site."""
        return {name: count for name, count in held.items() if name in self.nodes}


def find_site(
    nodes: Collection[PbsNode],
    queues: Mapping[str, PbsQueue],
    name: str | None,
    reservations: Collection[PbsReservation] = (),
) -> SiteNodes:
    """The nodes that jobs of a queue may use; of a routing queue, those of all its destinations.

    A reservation's queue uses what is set aside for it.

    Raises:
        SchedulerError: there is no such queue.
    """
    queue = find_queue(queues, name)
    reserved = any(each.queue == queue.name for each in reservations)
    used = used_by(queue, nodes, queues, reservations)
    return SiteNodes(
        queue=queue,
        nodes={node.name: _node(node) for node in used if in_service(node)},
        related=frozenset({queue.name}) if reserved else _related(used, _owners(nodes), queues),
        total=sum(node.processors for node in used),
        exclusive=bool(used) and all(node.exclusive for node in used),
        machines=node_sizes(used),
    )


def used_by(
    queue: PbsQueue,
    nodes: Collection[PbsNode],
    queues: Mapping[str, PbsQueue],
    reservations: Collection[PbsReservation] = (),
) -> list[PbsNode]:
    """The nodes, in service or not, on which jobs of a queue may run."""
    own = next((each for each in reservations if each.queue == queue.name), None)
    if own is not None:
        return [
            msgspec.structs.replace(node, processors=own.nodes[node.name], memory=None)
            for node in nodes
            if node.name in own.nodes
        ]
    owners, users = _owners(nodes), execution_queues(queue, queues)
    return [node for node in nodes if any(serves(node, user, owners) for user in users)]


def in_service(node: PbsNode) -> bool:
    """Whether it takes new work."""
    return not node.states & _OUT


def _owners(nodes: Iterable[PbsNode]) -> frozenset[str]:
    """The queues that have nodes of their own."""
    return frozenset(node.queue for node in nodes if node.queue is not None)


def find_queue(queues: Mapping[str, PbsQueue], name: str | None) -> PbsQueue:
    """Raises SchedulerError: there is no such queue, or none is named and PBS has no default."""
    if name is None:
        raise SchedulerError("PBS has no default queue: set `partition` (the queue) for this site")
    if name not in queues:
        there = ", ".join(sorted(queues)) or "none at all"
        raise SchedulerError(f"PBS has no queue {name}; there are: {there}")
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


def serves(node: PbsNode, queue: PbsQueue, owners: Collection[str]) -> bool:
    """Whether jobs of an execution queue may run on a node.

    Args:
        owners: the queues that have nodes of their own, and use no others.
    """
    if node.queue is not None or queue.name in owners:
        return node.queue == queue.name
    if node.partition != queue.partition:
        return False
    return all(value in node.traits.get(trait, frozenset()) for trait, value in queue.wants.items())


def _related(
    used: Collection[PbsNode], owners: Collection[str], queues: Mapping[str, PbsQueue]
) -> frozenset[str]:
    """All queues whose jobs may come to these nodes, routing queues included."""
    direct = {
        queue.name
        for queue in queues.values()
        if not queue.routes_to and any(serves(node, queue, owners) for node in used)
    }
    routing = {
        queue.name
        for queue in queues.values()
        if queue.routes_to and direct.intersection(each.name for each in execution_queues(queue, queues))
    }
    return frozenset(direct | routing)


def _node(row: PbsNode) -> SiteNode:
    full = bool(row.states & _FULL)
    return SiteNode(
        name=row.name,
        host=row.host,
        processors=row.processors,
        allocated=row.processors if full else min(row.assigned, row.processors),
        sole="job-exclusive" in row.states and len(row.jobs) == 1,
        memory=row.memory,
    )
