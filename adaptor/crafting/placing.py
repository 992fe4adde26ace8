"""What the nodes of a site hold: a task never spans two of them, and takes memory beside processors. Pure."""

from __future__ import annotations

from adaptor.model import QueueState
from adaptor.units import counted, format_size


def placeable(queue: QueueState, processors: int, memory: int | None) -> int:
    """The processors of all tasks of this size that empty nodes hold at the same time.

    `memory` is in bytes. Where the nodes are not known, the processors of the site.
    """
    if not queue.nodes:
        return queue.processors
    slots = sum(size.count * size.slots(processors, memory) for size in queue.nodes)
    return min(queue.processors, slots * processors)


def why_no_node_holds(queue: QueueState, processors: int, memory: int | None) -> str:
    """Why no node can ever run a task of this size (`memory` in bytes); empty: one can, or none is known."""
    if not queue.nodes or any(size.slots(processors, memory) for size in queue.nodes):
        return ""
    widest = max(size.processors for size in queue.nodes)
    if processors > widest:
        need = counted(processors, "processor")
        return f"each needs {need} on one node, and the largest node has {widest}; submit with fewer --cpus"
    largest = max(size.memory or 0 for size in queue.nodes if size.processors >= processors)
    needs = f"{format_size(memory or 0)} on one node with {counted(processors, 'processor')}"
    return f"each needs {needs}, and such a node has {format_size(largest)}; submit with less --mem"
