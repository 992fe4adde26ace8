"""Of which sizes the machines of a site are, and whether a request ever fits on them. Pure.

PBS takes a chunk from one machine, from several of its vnodes where need be (eval_placement() in OpenPBS's
src/scheduler/node_info.cpp): what counts is a machine with all its vnodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from adaptor.crafting.fits import tasks_on
from adaptor.resources import Gpus, Node
from backends.describing import size_in_words
from backends.pbs.rows import PbsNode
from backends.pbs.shape import Shape


def machines_of(nodes: Iterable[PbsNode], ours: Collection[str] | None = None) -> tuple[Node, ...]:
    """Those with processors, in service or not; the vnodes of one together.

    While some vnodes of a machine are out of service it is as large as the rest.

    Args:
        ours: the machines that the site's requests may use; None: all.
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
    told = [node.memory for node in those if node.memory is not None]
    return Node(
        name=host,
        processors=sum(each.processors for each in those),
        memory=(sum(told) if told else None),
        gpus=_gpus(those),
        in_service=in_service,
        ours=ours,
    )


def _gpus(vnodes: Iterable[PbsNode]) -> Gpus:
    found: Counter[str] = Counter()
    for node in vnodes:
        found[node.gpu_type] += node.gpus
    return tuple(sorted((type, count) for type, count in found.items() if count > 0))


def misfit(shape: Shape, machines: Iterable[Node], queue: str) -> str:
    """Why a request of this shape would never start, even with all nodes idle; empty where it would.

    Args:
        machines: of `queue`; without any, nothing is known.
    """
    ours = [node for node in machines if node.ours]
    if not ours or shape.node:
        return ""
    wanted = size_in_words(
        shape.processors, shape.memory, [(shape.gpu_type, shape.gpus)] if shape.gpus else []
    )
    held = sum(_chunks(node, shape) for node in ours)
    if held >= shape.chunks:
        return ""
    if held == 0:
        sizes = sorted({(node.processors, node.memory, node.gpus) for node in ours}, key=_largest_first)
        there = " or ".join(size_in_words(processors, memory, gpus) for processors, memory, gpus in sizes)
        return f"no node of queue {queue} has {wanted}: its nodes have {there}; ask for less per task"
    return (
        f"{shape.chunks} × {wanted} were asked for, each on one node, but all nodes of queue {queue} "
        f"together hold {held}: lower `limits.max_proc` of this site to {held * shape.processors}"
    )


def _largest_first(size: tuple[int, int | None, Gpus]) -> tuple[int, int, bool, Gpus]:
    processors, memory, gpus = size
    return -processors, -(memory or 0), memory is None, gpus


def _chunks(node: Node, shape: Shape) -> int:
    held = tasks_on(node, shape.size)
    return min(1, held) if shape.whole_nodes else held
