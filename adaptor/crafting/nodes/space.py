"""The nodes of a queue as vectors: processors, memory, and each type of GPU a dimension. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from adaptor.model import PendingJob, RunningJob
from adaptor.resources import Gpus, Need, Node, Part

PROCESSORS, MEMORY, GPUS = 0, 1, 2  # dimensions; from `GPUS` on, one for each type

UNCOUNTED = 1 << 60  # the memory of a node on which it is not counted

Vector = tuple[int, ...]


class Ask(msgspec.Struct, frozen=True):
    """A `Need` in the dimensions of a space."""

    chunks: int
    each: Vector
    """Amounts of each chunk; GPUs of any type are not in it."""
    any_gpus: int
    """GPUs of each chunk whose type does not matter."""
    scatter: bool
    whole: bool
    among: int
    """Nodes on which it may run: a number in `Space.lists`."""


class Space:
    """The nodes in service, numbered in their order."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = [node for node in nodes if node.in_service]
        self.index = {node.name: number for number, node in enumerate(self.nodes)}
        self.types = sorted({type for node in self.nodes for type, _ in node.gpus})
        self.capacity = [
            self._vector(node.processors, UNCOUNTED if node.memory is None else node.memory, node.gpus)
            for node in self.nodes
        ]
        self._too_many = sum(processors for processors, *_ in self.capacity) + 1
        """Chunks that never fit: people ask for anything."""
        self.lists: list[list[int]] = [list(range(len(self.nodes))), []]
        """Numbers of nodes among which jobs may run: all, none, and what they ask for."""
        self._among: dict[frozenset[str], int] = {}
        self._asks: dict[Need, list[Ask]] = {}

    @property
    def dimensions(self) -> int:
        return GPUS + len(self.types)

    def held(self, part: Part) -> tuple[int, Vector] | None:
        """The node and what is held of it; None: the node is not in service."""
        number = self.index.get(part.node)
        if number is None:
            return None
        memory = 0 if self.nodes[number].memory is None else part.memory
        return number, self._vector(part.processors, memory, part.gpus)

    def asks(self, job: RunningJob | PendingJob) -> list[Ask]:
        """Chunks for which a job without known parts asks, the most first; any processors if it does not
        tell."""
        need = job.need if isinstance(job, PendingJob) else None
        need = need or Need(chunks=job.processors, processors=1)
        if need not in self._asks:  # most jobs of a long queue ask for what others do
            parts = sorted((need, *need.others), key=lambda part: -part.chunks * part.processors)
            self._asks[need] = [self.of(part) for part in parts]
        return self._asks[need]

    def of(self, need: Need) -> Ask:
        typed = need.gpus if need.gpu_type else 0
        return Ask(
            min(need.chunks, self._too_many),
            self._vector(need.processors, need.memory, ((need.gpu_type, typed),) if typed else ()),
            need.gpus - typed,
            need.scatter,
            need.whole_nodes,
            self._eligible(need),
        )

    def _eligible(self, need: Need) -> int:
        """Place in `lists` of the nodes on which a need may be met; 1: no node has the type of its GPUs."""
        if need.gpus and need.gpu_type and need.gpu_type not in self.types:
            return 1
        if need.nodes is None:
            return 0
        if need.nodes not in self._among:
            self._among[need.nodes] = len(self.lists)
            self.lists.append(sorted(self.index[name] for name in need.nodes & self.index.keys()))
        return self._among[need.nodes]

    def _vector(self, processors: int, memory: int, gpus: Gpus) -> Vector:
        counts = dict(gpus)
        return (processors, memory, *(counts.get(type, 0) for type in self.types))


def chunks_on(free: Sequence[int], capacity: Sequence[int], ask: Ask) -> int:
    """Chunks of a request that a node holds in addition to what is held of it; one at most where they
    scatter."""
    if ask.whole and tuple(free) != tuple(capacity):
        return 0
    count = min((have // wanted for have, wanted in zip(free, ask.each, strict=True) if wanted), default=0)
    if ask.any_gpus:
        count = min(count, sum(free[GPUS:]) // ask.any_gpus)
    return min(count, 1) if ask.scatter else count


def taken_by(chunks: int, free: Sequence[int], capacity: Sequence[int], ask: Ask) -> Vector:
    """Amounts that a number of chunks takes of a node; GPUs of any type in the order of the types."""
    if ask.whole:
        return tuple(capacity)
    taken = [chunks * wanted for wanted in ask.each]
    left = chunks * ask.any_gpus
    for dimension in range(GPUS, len(taken)):
        more = min(left, free[dimension] - taken[dimension])
        taken[dimension] += more
        left -= more
    return tuple(taken)
