"""The nodes of a simulated cluster, and how the jobs of a trace are laid on them."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from adaptor.resources import Need, Node
from adaptor.units import LARGEST, counted, parse_size
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import Array

MOST_NODES = 20_000  # beyond it a long queue does not fit into the memory of a small machine
_GROUP = re.compile(r"(\d{1,9})x(\d{1,9})(?::(\S+))?")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes in the order in which they are filled."""

    nodes: tuple[Node, ...]
    by_memory: bool = False
    """Whether memory is counted: every node then says how much it has."""
    shown: bool = True
    """Whether the scheduler says where jobs run; no: the cluster counts processors, as one node of all."""

    @property
    def processors(self) -> int:
        return sum(node.processors for node in self.nodes)

    def capacity(self) -> Array:
        """(nodes, 1 or 2): processors, and bytes where memory is counted."""
        rows = [[node.processors, node.memory or 0][: 1 + self.by_memory] for node in self.nodes]
        return np.array(rows, np.int64).reshape(-1, 1 + self.by_memory)

    def chunks(self, need: Need) -> int:
        """Chunks of this size that the empty nodes hold together."""
        each = [need.processors, need.memory][: 1 + self.by_memory]
        return int(_room(self, np.array([each], np.int64))[0])


def parse_machine(text: str, memory: str | None = None) -> Machine:
    """`128x4`, or several kinds of nodes as in `100x32:64G+10x64:256G`: number x processors : memory.

    Args:
        memory: of each node that does not say its own, such as `16G`.

    Raises:
        ValueError: this is no such text, only some nodes say their memory, or there are too many.
    """
    nodes: list[Node] = []
    for group in text.replace(" ", "").split("+"):
        match = _GROUP.fullmatch(group)
        if not match or not int(match[1]) or not int(match[2]):
            raise ValueError(
                f"{group!r} is no kind of nodes such as 128x4 or 100x32:64G (number x processors)"
            )
        if len(nodes) + int(match[1]) > MOST_NODES:
            raise ValueError(f"{text!r} are more than {MOST_NODES:,} nodes, the most that is simulated")
        size = match[3] or memory
        held = parse_size(size) if size else None
        nodes += [
            Node(name=f"n{len(nodes) + number + 1}", processors=int(match[2]), memory=held)
            for number in range(int(match[1]))
        ]
    known = sum(node.memory is not None for node in nodes)
    if 0 < known < len(nodes):
        raise ValueError(f"{text!r}: {counted(len(nodes) - known, 'node')} without memory; say --node-memory")
    return Machine(nodes=tuple(nodes), by_memory=known > 0)


class LaidOut(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The jobs that fit on the nodes, in chunks."""

    machine: Machine
    jobs: Jobs
    chunks: Array
    each: Array
    """(n, dimensions): what one chunk takes."""
    left_out: int
    """Jobs that the empty nodes do not hold."""


def lay_out(jobs: Jobs, machine: Machine, chunk: int | None = None) -> LaidOut:
    """Cut jobs into chunks of `chunk` processors, each on one node; the last one is as large as the others.

    A job of fewer processors is one chunk. The memory of a chunk is that of its processors; jobs of which
    the trace does not know it take none. Jobs that the empty nodes do not hold are left out.

    Args:
        chunk: None: whole nodes, and all of their memory.

    Raises:
        TraceError: whole nodes are asked for, and they differ in size; or no job is left.
    """
    sizes = _sizes(jobs, machine, chunk)
    chunks = -(-jobs.processors // sizes[:, 0])
    fits = _room(machine, sizes) >= chunks
    if not fits.any() and len(jobs):
        raise TraceError("the nodes hold none of the trace's jobs; say other --nodes or a smaller --chunk")
    held = chunks[fits] * sizes[fits, 0]
    return LaidOut(
        machine=machine,
        jobs=msgspec.structs.replace(jobs.only(fits), processors=held),
        chunks=chunks[fits],
        each=sizes[fits],
        left_out=int((~fits).sum()),
    )


def on_one_node(jobs: Jobs, processors: int) -> LaidOut:
    """All jobs of a cluster that counts processors. Raises ValueError: it has none."""
    if processors < 1:
        raise ValueError(f"a cluster of {processors} processors runs nothing")
    return LaidOut(
        machine=Machine(nodes=(Node(name="", processors=processors),), shown=False),
        jobs=jobs,
        chunks=np.ones(len(jobs), np.int64),
        each=jobs.processors.astype(np.int64)[:, None],
        left_out=0,
    )


def _sizes(jobs: Jobs, machine: Machine, chunk: int | None) -> Array:
    """By job, what one chunk takes."""
    if chunk is None:
        if len(np.unique(machine.capacity(), axis=0)) > 1:
            raise TraceError("--chunk node: the nodes differ in size; say how many processors a chunk has")
        return np.repeat(machine.capacity()[:1], len(jobs), axis=0)
    processors = np.minimum(jobs.processors, chunk)
    if not machine.by_memory:
        return processors[:, None]
    per_processor = np.zeros(len(jobs)) if jobs.memory is None else jobs.memory.astype(np.float64)
    memory = np.minimum(per_processor * processors, float(LARGEST)).astype(np.int64)
    return np.stack([processors, memory], axis=1)


def _room(machine: Machine, sizes: Array) -> Array:
    """By row of sizes, the chunks that the empty nodes hold."""
    kinds, count = np.unique(machine.capacity(), axis=0, return_counts=True)
    chunks = [np.where(sizes > 0, kind // np.maximum(1, sizes), kind[0]).min(axis=1) for kind in kinds]
    room: Array = np.stack(chunks, axis=1) @ count
    return room
