"""Of which sizes the machines of a site are, and whether a request ever fits on them. Pure.

PBS takes a chunk from one machine, from several of its vnodes where need be (eval_placement() in OpenPBS's
src/scheduler/node_info.cpp): what counts is a machine with all its vnodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from adaptor.model import NodeSize
from adaptor.units import counted, format_size
from backends.pbs.rows import PbsNode
from backends.pbs.shape import Shape


def node_sizes(nodes: Iterable[PbsNode]) -> tuple[NodeSize, ...]:
    """Those with processors, in service or not; the largest first."""
    machines: dict[str, list[PbsNode]] = {}
    for node in nodes:
        machines.setdefault(node.host, []).append(node)
    found = Counter(
        (sum(each.processors for each in vnodes), _memory(vnodes)) for vnodes in machines.values()
    )
    sizes = [
        NodeSize(count, processors, memory) for (processors, memory), count in found.items() if processors
    ]
    return tuple(sorted(sizes, key=lambda size: (-size.processors, -(size.memory or 0), size.memory is None)))


def _memory(vnodes: Iterable[PbsNode]) -> int | None:
    told = [node.memory for node in vnodes if node.memory is not None]
    return sum(told) if told else None


def misfit(shape: Shape, sizes: Sequence[NodeSize], queue: str) -> str:
    """Why a request of this shape would never start, even with all nodes idle; empty where it would.

    Args:
        sizes: of the nodes of `queue`; without any, nothing is known.
    """
    if not sizes or shape.node:
        return ""
    wanted = _words(shape.processors, shape.memory)
    held = sum(size.count * _chunks(size, shape) for size in sizes)
    if held >= shape.chunks:
        return ""
    if held == 0:
        there = " or ".join(_words(size.processors, size.memory) for size in sizes)
        return f"no node of queue {queue} has {wanted}: its nodes have {there}; ask for less per task"
    return (
        f"{shape.chunks} × {wanted} were asked for, each on one node, but all nodes of queue {queue} "
        f"together hold {held}: lower `limits.max_proc` of this site to {held * shape.processors}"
    )


def _chunks(size: NodeSize, shape: Shape) -> int:
    held = size.slots(shape.processors, shape.memory)
    return min(1, held) if shape.whole_nodes else held


def _words(processors: int, memory: int | None) -> str:
    words = counted(processors, "processor")
    return words if memory is None else f"{words} and {format_size(memory)} of memory"
