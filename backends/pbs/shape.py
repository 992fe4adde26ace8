"""How a request lies on nodes, in the one form that every dialect can ask for."""

from __future__ import annotations

import math
from collections.abc import Collection

from adaptor.crafting.fits import tasks_on
from adaptor.resources import Node, TaskSize
from backends.base import PilotOrder
from backends.shape import RequestParts


class PbsShape(RequestParts, frozen=True, kw_only=True):
    """Its parts are chunks."""

    node: str = ""
    """The very node of the only chunk, where one is named."""
    scatter: bool = False
    """Whether each chunk lies on a node of its own, beside jobs of others."""
    traits: tuple[tuple[str, str], ...] = ()
    """What the node of each chunk must have besides (`backends.pbs.constraints`)."""


def shape_of(order: PilotOrder, processors_per_node: int | None, machines: Collection[Node]) -> PbsShape:
    """The donated node, whole nodes, or one chunk per task that runs at a time.

    Small chunks fit into every gap. Tasks that share a GPU are one chunk.

    Args:
        processors_per_node: given where only whole nodes are asked for.
        machines: of the site.
    """
    task, p = order.task, order.request.p
    kind = task.gpu_type if task.gpus else ""
    if order.node:
        part = TaskSize(processors=p, gpus=_gpus_of(order, machines), gpu_type=kind)
        return PbsShape(count=1, part=part, whole_nodes=True, node=order.node)
    if task.nodes > 1:
        # Processors of most of the machines that may be one of a task's; as `adaptor.crafting.fits.width`.
        sizes = [node.processors for node in machines if node.ours and tasks_on(node, task)]
        size = max(sizes, key=sizes.count, default=task.processors)
        return _of_tasks(1, math.ceil(p / size), size, task, whole_nodes=True)
    if processors_per_node is not None:
        tasks = _together(task, processors_per_node, machines)
        chunks = math.ceil(p / processors_per_node)
        return _of_tasks(tasks, chunks, processors_per_node, task, whole_nodes=True)
    if order.spread:
        return PbsShape(count=order.spread, part=TaskSize(processors=p // order.spread), scatter=True)
    together = min(task.tasks_per_gpu, max(1, p // task.processors))
    each = task.processors * together
    return _of_tasks(together, p // each, each, task, whole_nodes=False)


def _of_tasks(tasks: int, chunks: int, processors: int, task: TaskSize, *, whole_nodes: bool) -> PbsShape:
    """Chunks of a number of tasks each."""
    part = TaskSize(
        processors=processors,
        memory=None if task.memory is None else tasks * task.memory,
        gpus=task.gpus_for(tasks) if task.gpus else 0,
        gpu_type=task.gpu_type if task.gpus else "",
    )
    return PbsShape(count=chunks, part=part, whole_nodes=whole_nodes)


def _together(task: TaskSize, processors: int, machines: Collection[Node]) -> int:
    """Tasks on one whole node: as many as fit on the least of those that hold any, for PBS may give that."""
    by_processors = processors // task.processors
    held = [tasks_on(node, task) for node in machines if node.ours]
    return max(1, min([by_processors, *(tasks for tasks in held if tasks)]))


def _gpus_of(order: PilotOrder, machines: Collection[Node]) -> int:
    """All of a donated node that its tasks can use."""
    if not order.task.gpus:
        return 0
    return sum(node.gpus_of(order.task.gpu_type) for node in machines if node.name == order.node)
