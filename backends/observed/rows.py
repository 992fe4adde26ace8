"""Rows of jobs, nodes and reservations that the parsers of every scheduler return. Memory in bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec

from adaptor.resources import Gpus, Need


def as_gpus(counts: Mapping[str, int]) -> Gpus:
    return tuple(sorted((type, count) for type, count in counts.items() if count > 0))


def named_as(gpus: Gpus, node: Gpus) -> Gpus:
    """GPUs with the type of the node's GPUs, if only the number is known and the node has but one type."""
    if not gpus or len(node) != 1:
        return gpus
    known = node[0][0]
    counts: Counter[str] = Counter()
    for type, count in gpus:
        counts[type or known] += count
    return as_gpus(counts)


def total(parts: Iterable[Gpus]) -> Gpus:
    counts: Counter[str] = Counter()
    for gpus in parts:
        for type, count in gpus:
            counts[type] += count
    return as_gpus(counts)


def without(gpus: Gpus, taken: Gpus) -> Gpus:
    """GPUs that are left; those taken without a type are taken of any type, in the order of the names."""
    if not taken:
        return gpus
    left = Counter(dict(gpus))
    rest = 0
    for type, count in taken:
        part = min(count, left[type])
        left[type] -= part
        rest += count - part if type == "" else 0
    for type in sorted(left):
        part = min(rest, left[type])
        left[type] -= part
        rest -= part
    return as_gpus(left)


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """Amounts that a job holds of one node (or vnode), or that a node has."""

    processors: int = 0
    memory: int = 0
    gpus: Gpus = ()

    def __bool__(self) -> bool:
        return bool(self.processors or self.memory or self.gpus)

    def __add__(self, other: Amounts) -> Amounts:
        gpus = total((self.gpus, other.gpus)) if self.gpus and other.gpus else self.gpus or other.gpus
        return Amounts(self.processors + other.processors, self.memory + other.memory, gpus)

    def __mul__(self, count: int) -> Amounts:
        gpus = tuple((type, number * count) for type, number in self.gpus)
        return Amounts(self.processors * count, self.memory * count, gpus)

    def beyond(self, other: Amounts) -> Amounts:
        """The parts of these amounts that exceed the other ones."""
        return Amounts(
            max(0, self.processors - other.processors),
            max(0, self.memory - other.memory),
            without(self.gpus, other.gpus),
        )

    def within(self, other: Amounts) -> Amounts:
        """These amounts, each at most that of the other."""
        return self.beyond(self.beyond(other))


NOTHING = Amounts()


class JobRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job that waits, runs or is about to end, or an array of jobs that wait."""

    id: str
    elements: tuple[str, ...]
    """Ids: its own; of an array, those of its elements that may start, in their order."""
    user: str = ""
    """User of the job; empty: not known."""
    queues: tuple[str, ...]
    """Queues (or partitions) from which it may start, or has started."""
    state: Literal["waiting", "running", "ending", "suspended", "unknown"]
    limit: float = math.inf
    """Seconds; `math.inf` where it has none."""
    end: float = math.inf
    """Epoch seconds of its end by its limit; `math.inf`: not known."""
    processors: int
    """Processors of each element."""
    node_count: int = 1
    """Nodes that it asks for at least."""
    exclusive: bool = False
    """Whether it takes whole nodes."""
    nodes: tuple[str, ...] = ()
    """Nodes on which the job holds something; empty while it waits."""
    holds: Mapping[str, Amounts] | None = {}
    """Amounts by node; None: not told, and taken to be the same number of processors on each of `nodes`."""
    leaving: bool = False
    """Whether it got the order to make room for others."""
    considered: bool = False
    """Whether the scheduler looks for a place for it at the moment."""
    place: tuple[float, ...] = ()
    """Orders waiting jobs: the lowest is considered first."""
    planned_start: float | None = None
    """Planned start of the first element."""
    plan: Mapping[str, Amounts | None] = {}
    """Amounts that the job will then hold, by node; None: unknown, and taken to be all of the node."""
    need: Need | None = None
    """Resources of the job by node; None: its processors may lie on any nodes."""

    @property
    def held_nodes(self) -> Collection[str]:
        return self.nodes if self.holds is None else self.holds.keys()

    @property
    def waits(self) -> bool:
        """Whether it is queued, and the scheduler looks for a place for it."""
        return self.state == "waiting" and self.considered


class ReservationRow(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, or parts of them, set aside for a time."""

    name: str
    start: float
    end: float
    nodes: Mapping[str, Amounts | None]
    """Amounts by node (or vnode); None: all of it."""
    queue: str = ""
    """Queue whose jobs run there; empty: not known."""
    exclusive: bool = False
    """Whether it has its nodes whole, however little of them it asked for."""
    machines: bool = False
    """Whether it has all vnodes of its machines."""
    reported: bool = False
    """Whether the nodes report as held what it has while it is on."""
