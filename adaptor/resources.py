"""Resources that nodes have, jobs hold and tasks need: processors, memory, GPUs. Frozen types; memory in
bytes."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

Gpus = tuple[tuple[str, int], ...]
"""GPUs by type, `("", n)` where the type has no name; sorted, no type twice, no count of 0."""

TINY = 1e-9


LEAST_SHARE = 0.01  # of a GPU that several tasks share


MOST_GPUS = 10_000  # of one task: more is a typing error
MOST_LETTERS = 64  # in the name of a type of GPUs


class TaskGpus(msgspec.Struct, frozen=True):
    """The GPUs of a task, as its user writes them."""

    count: Annotated[float, msgspec.Meta(gt=0, le=MOST_GPUS)]
    """A fraction of at most 1/2 where several tasks share a GPU, else a whole number."""
    type: Annotated[str, msgspec.Meta(max_length=MOST_LETTERS)] = ""
    """Type of the GPUs; empty: any."""

    def __post_init__(self) -> None:
        """Raises ValueError: it is neither a whole number nor a share that several tasks can have."""
        if not (LEAST_SHARE - TINY <= self.count <= 0.5 + TINY or self.count == int(self.count) >= 1):
            raise ValueError(
                f"{self.count:g} of a GPU is no share that several tasks can have; write a whole number, or "
                f"from {LEAST_SHARE:g} to 0.5"
            )


class TaskSize(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that one task needs of one node, or of each of several."""

    processors: int = 1
    memory: int | None = None
    """Bytes of memory; None: not counted."""
    gpus: float = 0
    """A fraction of at most 1/2 where several tasks share a GPU, else a whole number."""
    gpu_type: str = ""
    """Type of the GPUs; empty: any."""
    nodes: int = 1
    """Number of nodes; more than one: a task takes whole nodes of one pilot."""

    @property
    def total_processors(self) -> int:
        """Processors on all its nodes together, at least."""
        return self.processors * self.nodes

    @property
    def tasks_per_gpu(self) -> int:
        """Tasks that share one GPU; 1 where a task takes whole ones, or none."""
        return math.floor(1 / self.gpus + TINY) if 0 < self.gpus < 1 else 1

    @property
    def whole_gpus(self) -> int:
        """GPUs of `tasks_per_gpu` such tasks on one node."""
        return math.ceil(self.gpus)

    @property
    def gpu_share(self) -> float:
        """The part of each of its GPUs that a task holds."""
        return 1 / self.tasks_per_gpu

    def gpus_for(self, tasks: int) -> int:
        """Whole GPUs that `tasks` on one node take."""
        return math.ceil(tasks / self.tasks_per_gpu) * self.whole_gpus

    def covers(self, other: TaskSize) -> bool:
        """True if the place of a task of this size is large enough for one of the other."""
        return (
            self.nodes == other.nodes
            and self.processors >= other.processors
            and (self.memory or 0) >= (other.memory or 0)
            and self.gpus >= other.gpus
            and (not other.gpus or other.gpu_type in ("", self.gpu_type))
            and bool(self.gpus) == bool(other.gpus)
        )


class OwnNeeds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Needs of one task in place of those of its bag; None: as the bag says."""

    cpus: int | None = None
    memory: int | None = None
    gpus: float | None = None
    """GPUs of the task; 0: none."""
    gpu_type: str = ""
    """Type of the GPUs; empty: any."""
    nodes: int | None = None
    time: float | None = None
    """Seconds that its user expects it to take."""

    def before(self, earlier: OwnNeeds) -> OwnNeeds:
        """These needs, completed by the earlier ones."""
        fields = ("cpus", "memory", "nodes", "time")
        mine = {name: value for name in fields if (value := getattr(self, name)) is not None}
        if self.gpus is not None:
            mine |= {"gpus": self.gpus, "gpu_type": self.gpu_type}
        merged: OwnNeeds = msgspec.structs.replace(earlier, **mine)
        return merged

    def over(self, usual: TaskSize) -> TaskSize:
        """The size of the task. `usual`: of its bag.

        Raises:
            ValueError: it has parts of a GPU on several nodes, which it has wholly.
        """
        mine: dict[str, object] = {"processors": self.cpus, "memory": self.memory, "nodes": self.nodes}
        if self.gpus is not None:
            mine |= {"gpus": self.gpus, "gpu_type": self.gpu_type}
        mine = {name: value for name, value in mine.items() if value is not None}
        size: TaskSize = msgspec.structs.replace(usual, **mine)
        if size.nodes > 1 and size.tasks_per_gpu > 1:
            raise ValueError("a task on several nodes has them wholly: its gpus must be a whole number")
        return size


class Part(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Amounts that a job holds, or will hold, of one node."""

    node: str
    processors: int
    memory: int = 0
    gpus: Gpus = ()


class Room(msgspec.Struct, frozen=True):
    """Free resources on the node of a worker."""

    processors: int = 0
    memory: int = 0
    gpus: tuple[float, ...] = ()
    """The free part of each GPU."""
    gpu_type: str = ""
    """Type of all its GPUs; empty: not known."""

    def holds(self, task: TaskSize) -> bool:
        """True if a task fits, or its part on one of its nodes."""
        if task.processors > self.processors or (task.memory or 0) > self.memory:
            return False
        return not task.gpus or self.places(task) is not None

    def places(self, task: TaskSize) -> list[int] | None:
        """The GPUs, by their place in `gpus`, that a task with GPUs gets; None: it does not fit."""
        if task.gpu_type not in ("", self.gpu_type):
            return None
        share = task.gpu_share
        fitting = [place for place, free in enumerate(self.gpus) if free >= share - TINY]
        if share < 1:  # the fullest first, so that whole ones stay free
            fitting.sort(key=self.gpus.__getitem__)
        return fitting[: task.whole_gpus] if len(fitting) >= task.whole_gpus else None

    def without(self, task: TaskSize) -> Room:
        """Resources that are left next to a task that fits."""
        gpus = self.gpus
        if task.gpus and (places := self.places(task)):
            gpus = tuple(free - task.gpu_share * (place in places) for place, free in enumerate(gpus))
        processors, memory = self.processors - task.processors, self.memory - (task.memory or 0)
        return Room(processors, memory, gpus, self.gpu_type)

    def slots(self, task: TaskSize) -> int:
        """Tasks that fit at the same time."""
        slots = self.processors // task.processors
        if task.memory:
            slots = min(slots, self.memory // task.memory)
        if not task.gpus:
            return slots
        if task.gpu_type not in ("", self.gpu_type):
            return 0
        each = (int(free / task.gpu_share + TINY) for free in self.gpus)
        return min(slots, sum(each) // task.whole_gpus)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of a site, as large as jobs may use it."""

    name: str
    processors: int
    memory: int | None = None
    """Bytes of memory; None: the scheduler does not count memory."""
    gpus: Gpus = ()
    in_service: bool = True
    ours: bool = True
    """False: the site's requests may not run there (its constraint, node list or partition); jobs of others
    may, and the site's profile does not count it."""

    def gpus_of(self, type: str) -> int:
        """Number of GPUs of this type, or of any type if it is empty."""
        return sum(count for each, count in self.gpus if type in ("", each))

    @property
    def whole(self) -> Part:
        return Part(node=self.name, processors=self.processors, memory=self.memory or 0, gpus=self.gpus)


class Need(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Resources for which a waiting job asks: `chunks` equal parts, each on one node."""

    chunks: int
    processors: int
    """Processors of each chunk; memory and GPUs are of each chunk too."""
    memory: int = 0
    gpus: int = 0
    gpu_type: str = ""
    """Type of the GPUs; empty: any."""
    scatter: bool = False
    """True if each chunk goes to a node of its own."""
    whole_nodes: bool = False
    """True if no other job may run next to it; it then holds all of each node."""
    nodes: frozenset[str] | None = None
    """Nodes on which it may run; None: every node. Jobs with the same answer share one set."""
    others: tuple[Need, ...] = ()
    """Chunks of other shapes for which it asks at the same time, without `others` of their own."""


class PerProcessor(msgspec.Struct, frozen=True):
    """Resources that a pilot holds, and pays for, with each processor that it asks for."""

    gpus: float = 0.0
    held: float = 1.0
    """Processors, at most: the scheduler may round what it gives up, to whole cores for instance."""


AS_ASKED = PerProcessor()
