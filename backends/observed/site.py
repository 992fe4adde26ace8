"""The nodes of a site: those on which its requests may run, and those of the jobs besides them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from adaptor.resources import Node, Part
from backends.observed.rows import NOTHING, Amounts

HeldByNode = Mapping[str, Amounts]  # by node (or vnode)


class SiteNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node in service, or a vnode where nodes are split."""

    name: str
    host: str
    """The machine; vnodes of one machine share it."""
    has: Amounts
    held: Amounts = NOTHING
    """Amounts that cannot be had at the moment."""
    ours: bool = True
    """Whether the site's requests may run there."""
    most: Amounts | None = None
    """Most of the node that the site's requests may have; None: all."""
    most_of_queue: bool = False
    """Whether that many processors are for all jobs of the queue together; else each request gets as many."""
    sole: bool = False
    """Whether one job has all of it, however little it asked for."""
    exclusive: bool = False
    """Whether jobs get it whole only."""

    @property
    def lasting(self) -> tuple[object, ...]:
        """All but what jobs have of it."""
        return self.name, self.host, self.has, self.ours, self.most, self.sole, self.exclusive

    @property
    def offered(self) -> Amounts:
        """Amounts that the site's requests may have of the node when nothing else is there."""
        return self.has if self.most is None else self.has.within(self.most)


class SiteNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that a partition or queue uses."""

    name: str
    """Name of the partition or queue."""
    listed: dict[str, SiteNode]
    """Nodes in service: ours, and those of others that the jobs around us use."""
    members: dict[str, frozenset[str]]
    """Nodes by partition (or queue), this one included, whose jobs may run on these machines."""
    machines: tuple[Node, ...]
    """All in the order in which the scheduler fills them, those out of service included."""
    hosts: Mapping[str, str] = {}
    """The machine of each node of whatever queue, where nodes are split; else a node is its own machine."""
    memory_counted: bool = True
    """Whether memory is given to jobs as processors are."""
    default_memory: int | None = None
    """Bytes for each processor of a request that names none; None: memory is not counted."""
    processor_step: int = 1
    """A request gets a multiple of these processors of each node. Field of `QueueState`, as is the next."""
    most_memory: int | None = None

    @property
    def nodes(self) -> dict[str, SiteNode]:
        """The nodes in service on which the site's requests may run, by name."""
        return {name: node for name, node in self.listed.items() if node.ours}

    @property
    def ours(self) -> frozenset[str]:
        """The machines on which the site's requests may run, in service or not."""
        return frozenset(machine.name for machine in self.machines if machine.ours)

    @property
    def processors(self) -> int:
        return sum(node.offered.processors for node in self.listed.values() if node.ours)

    @property
    def sizes(self) -> dict[str, int]:
        """Processors by machine of ours: the vnodes of one together."""
        found: Counter[str] = Counter()
        for node in self.nodes.values():
            found[node.host] += node.offered.processors
        return {host: size for host, size in found.items() if size}

    @property
    def usual_size(self) -> int:
        """Processors of most of the machines; 1 where there are none."""
        sizes = Counter(self.sizes.values())
        return sizes.most_common(1)[0][0] if sizes else 1

    def processors_of(self, held: HeldByNode) -> int:
        """Number of held processors on nodes in service that the site's requests may use."""
        listed = self.listed
        return sum(
            amounts.processors for name, amounts in held.items() if name in listed and listed[name].ours
        )

    def parts_of(self, held: HeldByNode) -> tuple[Part, ...]:
        """Held parts on machines that are listed and in service; the vnodes of a machine together."""
        machines: dict[str, Amounts] = {}
        for name, amounts in held.items():
            if amounts and name in self.listed:
                host = self.listed[name].host
                machines[host] = machines[host] + amounts if host in machines else amounts
        return tuple(
            Part(node=host, processors=amounts.processors, memory=amounts.memory, gpus=amounts.gpus)
            for host, amounts in machines.items()
        )

    def whole_machines(self, names: Iterable[str]) -> dict[str, Amounts]:
        """All of the machines of these nodes, as far as they are in service."""
        if not self.hosts:
            return {name: self.listed[name].has for name in names if name in self.listed}
        hosts = {self.hosts.get(name, name) for name in names}
        return {name: node.has for name, node in self.listed.items() if node.host in hosts}


def added(holdings: Iterable[HeldByNode]) -> dict[str, Amounts]:
    """Holdings by node, all of them together."""
    found: dict[str, Amounts] = {}
    for holding in holdings:
        for name, amounts in holding.items():
            found[name] = found[name] + amounts if name in found else amounts
    return found
