"""What the nodes of a site hold: a task never spans two of them, unless it takes whole ones. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from adaptor.model import QueueState
from adaptor.resources import Node, TaskSize
from adaptor.units import counted, format_size


def as_given(queue: QueueState, task: TaskSize) -> TaskSize:
    """The size with the memory that the scheduler counts: its default where the task names none."""
    memory = task.memory
    if memory is None and queue.default_memory is not None:
        memory = queue.default_memory * task.processors
    if memory is not None and queue.memory_step > 1:
        step = queue.memory_step * task.processors
        memory = math.ceil(memory / step) * step
    return msgspec.structs.replace(task, memory=memory)


def tasks_on(node: Node, task: TaskSize) -> int:
    """Tasks of this size that a node holds at the same time when it is empty.

    Of tasks that take several nodes: 1 where the node may be one of theirs.
    """
    held = node.processors // task.processors
    if task.memory and node.memory is not None:
        held = min(held, node.memory // task.memory)
    if task.gpus:
        held = min(held, gpu_slots(node.gpus_of(task.gpu_type), task))
    return min(held, 1) if task.nodes > 1 else held


def gpu_slots(gpus: int, task: TaskSize) -> int:
    """Tasks that so many whole GPUs of one node hold."""
    return gpus // task.whole_gpus * task.tasks_per_gpu


def width(queue: QueueState | None, task: TaskSize) -> int:
    """The processors of a request that one task takes: those of whole nodes if it takes several nodes.

    Then the usual size of the nodes that hold it; where none is known, the processors that it asks for.
    """
    if task.nodes == 1:
        return task.processors
    given = as_given(queue, task) if queue else task
    sizes = (
        Counter(node.processors for node in usable(queue) if tasks_on(node, given)) if queue else Counter()
    )
    return task.nodes * (sizes.most_common(1)[0][0] if sizes else task.processors)


def usable(queue: QueueState) -> Iterable[Node]:
    """The nodes that requests of the site may ever use, those out of service included."""
    return (node for node in queue.nodes if node.ours)


def each_kind(queue: QueueState) -> QueueState:
    """The queue with one of the nodes of each kind, where it is asked only whether any holds a task."""
    kinds = {(node.processors, node.memory, node.gpus): node for node in usable(queue)}
    return msgspec.structs.replace(queue, nodes=tuple(kinds.values()))


def placeable(queue: QueueState, task: TaskSize) -> int:
    """The processors of all tasks of this size that empty nodes hold at the same time.

    Where the nodes are not known, the processors of the site.
    """
    if queue.partitions:
        return max(placeable(each, task) for each in queue.partitions.values())
    if not queue.nodes:
        return queue.processors
    given = as_given(queue, task)
    slots = sum(tasks_on(node, given) for node in usable(queue)) // task.nodes
    return min(queue.processors, slots * width(queue, task))


def most_memory(queue: QueueState, task: TaskSize) -> int | None:
    """The most memory (bytes) with which a node holds a task that is else of this size.

    None: no node is known that does, or memory is not counted.
    """
    without = msgspec.structs.replace(task, memory=None)
    sizes = [node.memory for node in usable(queue) if node.memory and tasks_on(node, without)]
    step = queue.memory_step * task.processors
    return max(sizes) // step * step if sizes else None


def why_no_node_holds(queue: QueueState, task: TaskSize) -> str:
    """Why no node can ever run a task of this size; empty: one can, or none is known."""
    if queue.partitions:
        found = {name: why_no_node_holds(each, task) for name, each in queue.partitions.items()}
        if queue.closed or not all(found.values()):  # the nodes of a closed one are not known
            return ""
        return "; ".join(f"{name}: {why}" for name, why in found.items())
    nodes, task = list(usable(queue)), as_given(queue, task)
    fitting = sum(tasks_on(node, task) > 0 for node in nodes)
    if not nodes or fitting >= task.nodes:
        return ""
    if fitting:
        return f"each needs {task.nodes} nodes, and {fitting} of the site hold it; submit with fewer --nodes"
    return _too_many_processors(nodes, task) or _too_many_gpus(nodes, task) or _too_much_memory(nodes, task)


def _too_many_processors(nodes: list[Node], task: TaskSize) -> str:
    widest = max(node.processors for node in nodes)
    if task.processors <= widest:
        return ""
    need = counted(task.processors, "processor")
    return f"each needs {need} on one node, and the largest node has {widest}; submit with fewer --cpus"


def _too_many_gpus(nodes: list[Node], task: TaskSize) -> str:
    """With its processors: the largest number of GPUs, and which types there are."""
    if not task.gpus:
        return ""
    wide = [node for node in nodes if node.processors >= task.processors]
    most = max(node.gpus_of(task.gpu_type) for node in wide)
    if most >= task.whole_gpus:
        return ""
    kind = f"{task.gpu_type} GPU" if task.gpu_type else "GPU"
    need = f"each needs {counted(task.whole_gpus, kind)} on one node with " + counted(
        task.processors, "processor"
    )
    if most:
        return f"{need}, and the most that such a node has is {most}; submit with fewer --gpus"
    types = sorted({type or "GPUs without a type" for node in nodes for type, _ in node.gpus})
    there = f"the site has {', '.join(types)}" if types else "the site has no GPUs"
    return f"{need}, and {there if task.gpu_type or not types else 'no such node has any'}"


def _too_much_memory(nodes: list[Node], task: TaskSize) -> str:
    largest = max(
        node.memory or 0
        for node in nodes
        if node.processors >= task.processors and node.gpus_of(task.gpu_type) >= task.whole_gpus
    )
    needs = f"{format_size(task.memory or 0)} on one node with {counted(task.processors, 'processor')}"
    if task.gpus:
        needs += f" and {counted(math.ceil(task.gpus), 'GPU')}"
    return f"each needs {needs}, and such a node has {format_size(largest)}; submit with less --mem"
