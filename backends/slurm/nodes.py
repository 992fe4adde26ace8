"""The nodes of a site: which are in service, and how many processors they have."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.resources import Node
from backends.base import PartitionClosed
from backends.observed.remembered import Unchanged
from backends.observed.rows import Amounts
from backends.observed.site import SiteNode, SiteNodes
from backends.slurm.placing.gres import NodeDetail
from backends.slurm.placing.restriction import EVERYWHERE, Restriction, uses_one_thread
from backends.slurm.rows import NodeRow, Partition, find_partition

MEBIBYTE = 2**20


class MemoryTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes for each processor; None: not limited."""

    counted: bool = True
    """Whether memory is given to jobs as processors are."""
    default: int | None = None
    most: int | None = None
    request: int | None = None
    """Bytes of one request, with any number of processors."""

    def default_on(self, nodes: Iterable[Node]) -> int | None:
        """Bytes for each processor of a task that names no memory; None: memory is not counted.

        Slurm's default. Without one, Slurm would give a job all memory of its nodes and let no other job run
        there; so it is the least memory per processor of any node.
        """
        shares = [node.memory // node.processors for node in nodes if node.memory and node.processors]
        if not self.counted or not shares:
            return None
        bounds = [min(shares), self.default, self.most, self.request]
        least = min(bound for bound in bounds if bound is not None)
        return max(1, least // MEBIBYTE) * MEBIBYTE


class NodeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on the part of a node that requests of a partition may have, and the steps in which it is
    given."""

    processors: float = math.inf
    """Processors that all jobs of the partition together may have of a node: MaxCPUsPerNode."""
    of_socket: float = math.inf
    job_processors: float = math.inf
    """Processors that each request may have of a node."""
    least_nodes: int = 1
    """Least nodes of each request."""
    job_memory: int | None = None
    """Bytes that each request may have; None: no bound."""
    whole_cores: bool = True
    """False: whole sockets, or boards."""
    one_task: bool = False
    """Whether no two tasks share a core (CR_ONE_TASK_PER_CORE)."""
    one_thread: bool = False
    """Whether requests use one thread of each core: then a processor is a core."""

    def threads(self, detail: NodeDetail | None) -> int:
        """Slurm's processors in each processor of ours."""
        return detail.core if self.one_thread and detail is not None else 1

    def step(self, detail: NodeDetail | None, processors: int) -> int:
        """Processors that are given at once."""
        if detail is None:
            return 1
        if not self.whole_cores:
            return max(1, processors // max(1, detail.sockets))
        return 1 if self.one_thread else detail.core

    def most(self, detail: NodeDetail | None, has: Amounts) -> Amounts | None:
        """Most of the node that a request may have; None: all of it."""
        sockets = 1 if detail is None else detail.sockets
        bound = min(self.processors, self.of_socket * sockets, self.job_processors) / self.threads(detail)
        processors = has.processors if bound >= has.processors else int(bound)
        memory = has.memory if self.job_memory is None else min(self.job_memory, has.memory)
        most = Amounts(processors, memory, has.gpus)
        return None if most == has else most


def node_terms(
    settings: Mapping[str, str], partition: Partition | None, site: SiteConfig, job_processors: float
) -> NodeTerms:
    """Terms on nodes for requests of a site. `job_processors`: most on a node by its account and QOS."""
    given = settings.get("SelectTypeParameters", "").upper()
    whole_cores = not any(word in given for word in ("CR_SOCKET", "CR_BOARD"))
    one_thread, one_task = uses_one_thread(site.extra_args), "CR_ONE_TASK_PER_CORE" in given
    terms = NodeTerms(
        whole_cores=whole_cores, one_thread=one_thread, one_task=one_task, job_processors=job_processors
    )
    if partition is None:
        return terms
    return msgspec.structs.replace(
        terms,
        processors=partition.node_processors,
        of_socket=partition.socket_processors,
        job_memory=_bytes(partition.most_node_memory or settings.get("MaxMemPerNode", "")),
    )


def memory_terms(
    settings: Mapping[str, str], partitions: Mapping[str, Partition], name: str | None
) -> MemoryTerms:
    """Terms on memory in a partition, by default the default one."""
    partition = find_partition(partitions.values(), name)
    default, most = (settings.get(key, "") for key in ("DefMemPerCPU", "MaxMemPerCPU"))
    if partition is not None:
        default, most = partition.default_memory or default, partition.most_memory or most
    return MemoryTerms(
        counted="MEMORY" in settings.get("SelectTypeParameters", "").upper(),
        default=_bytes(default),
        most=_bytes(most),
    )


def gives_whole_nodes(settings: Mapping[str, str]) -> bool:
    return settings.get("SelectType", "") == "select/linear"


def _bytes(text: str) -> int | None:
    """Bytes in a number of MiB; None for 0 and UNLIMITED, which are no limit."""
    return int(text[:15]) * MEBIBYTE or None if text.isdigit() else None


_OUT = frozenset(
    {
        "blocked",
        "down",
        "drain",
        "drained",
        "draining",
        "fail",
        "failing",
        "future",
        "inval",
        "perfctrs",
        "power_down",
        "powering_down",
        "reboot_issued",
        "reboot_requested",
        "unknown",
    }
)
"""States of nodes that take no new work, whether or not jobs still run there (sinfo(1) of 22.05 to 26.05)."""
_IN = frozenset(
    {
        "allocated",
        "completing",
        "idle",
        "maint",
        "mixed",
        "planned",
        "powered_down",
        "powering_up",
        "reserved",
    }
)
"""All other states that are known."""
_OUT_FLAGS = frozenset("*!%@^")
"""Flags of nodes out of service: not responding; about to be powered down; about to be rebooted. `~` (powered
off until a job wants it), `#` (powering up), `-` (planned for a job) and `$` (maintenance) stay in
service."""

_UNCOUNTED = 1  # MiB: what slurm.conf(5) takes for a node whose RealMemory is not configured

_STANDSTILLS = {"down": "down", "drain": "drained", "inact": "inactive"}


class PartitionNodes(SiteNodes, frozen=True, kw_only=True):
    """The nodes of a partition; those that the site's keys keep its requests away from are not ours."""

    available: str
    """`up`, or why no job starts: `down`, `drain`, `inact`."""
    features: dict[str, frozenset[str]]
    """Features by node."""
    threads: Mapping[str, int] = {}
    """Slurm's processors in each processor of ours, by node where this is more than one."""
    least_nodes: int = 1
    """Least nodes of each request, by its QOS."""
    request_memory: int | None = None
    """Bytes that the account or QOS allows one request; None: no bound."""
    memory_shares: int = 1
    """Slurm's processors by which it counts the memory of each processor of ours. Where we use one thread of
    each core these are the threads with CR_ONE_TASK_PER_CORE (seen on 22.05), else the core."""


class KnownNode(msgspec.Struct, frozen=True):
    """Facts made of one node's rows."""

    turn: tuple[int, int]
    """The lowest is filled first."""
    machine: Node
    node: SiteNode | None
    """The node as the site uses it; None: it is out of service."""
    step: int = 1
    """Processors that are given at once."""
    threads: int = 1
    """Slurm's processors in each processor of ours."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the nodes besides their rows, and about the site."""

    details: Mapping[str, NodeDetail] = {}
    restriction: Restriction = EVERYWHERE
    memory: MemoryTerms = MemoryTerms()
    terms: NodeTerms = NodeTerms()
    known: Unchanged[KnownNode] = msgspec.field(default_factory=Unchanged)
    """Facts that the last look made of the nodes."""


def find_site(rows: Collection[NodeRow], partition: str | None, look: Look | None = None) -> PartitionNodes:
    """The nodes of a partition, or of the default one where none is named.

    Raises:
        PartitionClosed: there is no such partition, or it has no nodes.
    """
    look = look or Look()
    own = rows_of(rows, partition)
    by_name = {row.node: row for row in own}
    members = by_name.keys()
    sharing: dict[str, list[str]] = {}
    for row in rows:
        if row.node in members:
            sharing.setdefault(row.partition, []).append(row.node)
    found = look.known.of(
        lambda row, detail: _known(row, detail, look),
        [*by_name.values()],
        [*map(look.details.get, by_name)],
        under=(look.restriction, look.memory, look.terms),
    )
    machines = tuple(each.machine for each in sorted(found, key=lambda each: each.turn))
    present = [each.node for each in found if each.node is not None]
    ours = [each for each in found if each.machine.ours]
    return PartitionNodes(
        name=own[0].partition,
        available=own[0].available,
        listed={node.name: node for node in sorted(present, key=lambda node: not node.ours)},
        members={name: frozenset(nodes) for name, nodes in sharing.items()},
        machines=machines,
        features={name: look.details[name].features for name in members if name in look.details},
        memory_counted=look.memory.counted,
        default_memory=look.memory.default_on(each.machine for each in ours),
        processor_step=math.lcm(*(each.step for each in ours)),
        most_memory=look.memory.most if look.memory.counted else None,
        request_memory=look.memory.request,
        least_nodes=look.terms.least_nodes,
        threads={each.machine.name: each.threads for each in found if each.threads > 1},
        memory_shares=max((each.threads for each in ours), default=1) if look.terms.one_task else 1,
    )


def rows_of(rows: Collection[NodeRow], partition: str | None) -> list[NodeRow]:
    """Rows of a partition, by default of the default one; at least one.

    Raises:
        PartitionClosed: there is no such partition, or it has no nodes.
    """
    named = partition or next((row.partition for row in rows if row.default), None)
    if named is None:
        raise PartitionClosed("Slurm has no default partition: set `partition` for this site")
    own = [row for row in rows if row.partition == named]
    if not own:
        there = ", ".join(sorted({row.partition for row in rows})) or "none at all"
        raise PartitionClosed(f"Slurm has no partition {named} with nodes; there are: {there}")
    return own


def check_started(partition: str, available: str) -> None:
    """Raises PartitionClosed: the partition starts no jobs at the moment."""
    if available != "up":
        raise PartitionClosed(
            f"partition {partition} is {_STANDSTILLS.get(available, available)}: "
            "it starts no jobs at the moment"
        )


def in_service(row: NodeRow) -> bool:
    """Whether it takes new work: not in a state that is not known."""
    return row.state in _IN and not _OUT_FLAGS.intersection(row.flags)


def is_known(row: NodeRow) -> bool:
    return row.state in _IN or row.state in _OUT


def _known(row: NodeRow, detail: NodeDetail | None, look: Look) -> KnownNode:
    configured, allows, terms = row.memory > _UNCOUNTED, look.restriction, look.terms
    memory = row.memory * MEBIBYTE if detail is None else detail.memory
    total, threads = row.allocated + row.idle + row.other, terms.threads(detail)
    if detail is not None and detail.processors is not None:
        total = min(total, detail.processors)
    has = Amounts(total // threads, memory if configured else 0, detail.gpus if detail else ())
    most = terms.most(detail, has)
    step = terms.step(detail, total)
    machine = Node(
        name=row.node,
        processors=(most or has).processors // step * step or (most or has).processors,
        memory=(most or has).memory if configured else None,
        gpus=has.gpus,
        in_service=in_service(row),
        ours=allows.names(row.node) and (detail is None or allows.like(detail.features, detail.gres)),
    )
    turn = (detail.weight, detail.place) if detail else (1, 0)
    if not machine.in_service:
        return KnownNode(turn, machine, None, step, threads)
    counted = detail is not None and look.memory.counted and configured
    node = SiteNode(
        name=row.node,
        host=row.node,
        has=has,
        most=most,
        most_of_queue=min(terms.processors, terms.of_socket) < math.inf,
        held=Amounts(
            math.ceil(row.allocated / threads),
            detail.allocated_memory if detail and counted else 0,
            detail.gpus_used if detail else (),
        ),
        ours=machine.ours,
    )
    return KnownNode(turn, machine, node, step, threads)
