"""The nodes of a site: which are in service, and how many processors they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from adaptor.model import NodeSize
from backends.base import SchedulerError
from backends.slurm.rows import NodeRow

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
"""States of nodes that take no new work, whether or not jobs still run there (sinfo(1))."""
_OUT_FLAGS = frozenset("*!%@^")
"""Not responding; about to be powered down; about to be rebooted. `~` (powered off until a job wants
it), `#` (powering up), `-` (planned for a job) and `$` (maintenance) stay in service."""

_UNCOUNTED = 1
"""MiB: what slurm.conf(5) takes for a node whose RealMemory is not configured."""

_STANDSTILLS = {"down": "down", "drain": "drained", "inact": "inactive"}


class SiteNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node in service."""

    name: str
    processors: int
    allocated: int
    memory: int
    """MiB."""


class SiteNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's nodes in service, and all partitions that share one with it."""

    partition: str
    available: str
    """`up`, or why no job starts: `down`, `drain`, `inact`."""
    exclusive: bool
    """Whether the partition only gives whole nodes."""
    nodes: dict[str, SiteNode]
    related: frozenset[str]
    """The partitions whose jobs may run on these nodes, this one included."""
    sizes: tuple[NodeSize, ...]
    """Of all nodes of the partition, those out of service included."""

    @property
    def processors(self) -> int:
        return sum(node.processors for node in self.nodes.values())

    @property
    def usual_size(self) -> int:
        """Processors of most of the nodes; 1 where there are none."""
        sizes = Counter(node.processors for node in self.nodes.values())
        return sizes.most_common(1)[0][0] if sizes else 1

    def among(self, names: Iterable[str]) -> list[SiteNode]:
        return [self.nodes[name] for name in names if name in self.nodes]


def find_site(rows: Collection[NodeRow], partition: str | None) -> SiteNodes:
    """The nodes of a partition, or of the default one where none is named.

    Raises:
        SchedulerError: there is no such partition, or it has no nodes.
    """
    own = rows_of(rows, partition)
    members = {row.node for row in own}
    return SiteNodes(
        partition=own[0].partition,
        available=own[0].available,
        exclusive=own[0].exclusive,
        nodes={row.node: _node(row) for row in own if in_service(row)},
        related=frozenset(row.partition for row in rows if row.node in members),
        sizes=_sizes(own),
    )


def rows_of(rows: Collection[NodeRow], partition: str | None) -> list[NodeRow]:
    """Those of a partition, or of the default one where none is named: one at least.

    Raises:
        SchedulerError: there is no such partition, or it has no nodes.
    """
    named = partition or next((row.partition for row in rows if row.default), None)
    if named is None:
        raise SchedulerError("Slurm has no default partition: set `partition` for this site")
    own = [row for row in rows if row.partition == named]
    if not own:
        there = ", ".join(sorted({row.partition for row in rows})) or "none at all"
        raise SchedulerError(f"Slurm has no partition {named} with nodes; there are: {there}")
    return own


def check_started(partition: str, available: str) -> None:
    """Raises SchedulerError: the partition starts no jobs at the moment."""
    if available != "up":
        raise SchedulerError(
            f"partition {partition} is {_STANDSTILLS.get(available, available)}: "
            "it starts no jobs at the moment"
        )


def in_service(row: NodeRow) -> bool:
    """Whether it takes new work."""
    return row.state not in _OUT and not _OUT_FLAGS.intersection(row.flags)


def _sizes(rows: Iterable[NodeRow]) -> tuple[NodeSize, ...]:
    alike = Counter((_processors(row), row.memory) for row in {row.node: row for row in rows}.values())
    return tuple(
        NodeSize(count, processors, memory * 2**20 if memory > _UNCOUNTED else None)
        for (processors, memory), count in alike.items()
    )


def _processors(row: NodeRow) -> int:
    return row.allocated + row.idle + row.other


def _node(row: NodeRow) -> SiteNode:
    return SiteNode(
        name=row.node,
        processors=_processors(row),
        allocated=row.allocated,
        memory=row.memory,
    )
