"""The unit of a request's p: the least processors with which the scheduler gives a task all that it needs."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.placing import as_given, tasks_on, usable, width
from adaptor.crafting.situation import SiteRules
from adaptor.model import QueueState, Request
from adaptor.resources import Need, TaskSize


class RequestUnit(msgspec.Struct, frozen=True):
    """p is a multiple of `processors`."""

    processors: int
    tasks: int
    """That run in one unit at the same time."""
    each: int
    """Processors of one task."""

    def slots(self, processors: int) -> int:
        """Tasks that run at the same time on so many processors; a task never spans two whole nodes."""
        whole, rest = divmod(processors, self.processors)
        return whole * self.tasks + min(self.tasks, rest // self.each)


def unit_of(rules: SiteRules, queue: QueueState | None, task: TaskSize) -> RequestUnit:
    """One task; the tasks that share a GPU; a whole node where the site gives whole nodes.

    `queue` is None where the nodes are not known yet.
    """
    each, node = width(queue, task), rules.granularity
    if task.nodes > 1:
        return RequestUnit(each, 1, each)
    if node > 1 and task.processors <= node:
        return RequestUnit(node, _on_whole_node(queue, task, node), each)
    together = math.lcm(task.processors * task.tasks_per_gpu, node)
    return RequestUnit(together, together // task.processors, each)


def on_nodes(unit: RequestUnit, rules: SiteRules, queue: QueueState, task: TaskSize) -> Need:
    """What one unit asks of the nodes: one chunk, or a chunk on each of the nodes of a task."""
    whole = task.nodes > 1 or rules.granularity > 1
    ours = frozenset(node.name for node in queue.nodes if node.ours)
    return Need(
        chunks=task.nodes,
        processors=unit.processors // task.nodes,
        memory=(as_given(queue, task).memory or 0) * unit.tasks,
        gpus=task.gpus_for(unit.tasks),
        gpu_type=task.gpu_type,
        scatter=whole,
        whole_nodes=whole,
        nodes=None if len(ours) == len(queue.nodes) else ours,
    )


def chunk_of(rules: SiteRules, queue: QueueState, task: TaskSize) -> Need:
    """What one unit of requests for tasks of this size asks of the nodes."""
    return on_nodes(unit_of(rules, queue, task), rules, queue, task)


def need_of(request: Request, rules: SiteRules, queue: QueueState, task: TaskSize | None) -> Need | None:
    """What a request for tasks of this size asks of the nodes; None: the nodes or the size are not known."""
    if task is None or not queue.nodes:
        return None
    chunk = chunk_of(rules, queue, task)
    units = request.p // (chunk.chunks * chunk.processors)
    return msgspec.structs.replace(chunk, chunks=chunk.chunks * units)


def _on_whole_node(queue: QueueState | None, task: TaskSize, processors: int) -> int:
    """On the least of the nodes that hold one: the scheduler may give any of them."""
    by_processors = processors // task.processors
    held = [tasks_on(node, as_given(queue, task)) for node in usable(queue)] if queue else []
    return min([by_processors, *(tasks for tasks in held if tasks)])
