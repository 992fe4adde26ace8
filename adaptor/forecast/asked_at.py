"""Nodes of a queue that a request could take, and why it never starts there. Pure."""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from adaptor.crafting.fits import usable, why_no_node_holds
from adaptor.errors import UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.forecast.start import StartRequest, processors_for
from adaptor.model import QueueState
from adaptor.resources import Need, Node, TaskSize
from adaptor.units import counted, format_duration, round_up


def request_at(asked: AskedRequest, queue: QueueState, node: int) -> StartRequest:
    """The request at one place.

    Args:
        node: processors of a node where only whole nodes are given; else 1.

    Raises:
        UsageError: it asks for whole nodes where the nodes are not known.
    """
    asked.check()
    processors, nodes = asked.processors or 1, asked.nodes
    whole = node > 1 or (nodes is not None and asked.processors is None)
    if whole:
        size = node if node > 1 else _usual_size(asked, queue)
        nodes = nodes or math.ceil(processors / size)
        processors = nodes * size
    elif nodes is None and (asked.memory or asked.gpus):
        nodes = 1
    if not queue.nodes:
        return StartRequest(processors=processors, tr=asked.tr)
    ours = frozenset(each.name for each in usable(queue))
    each = processors // nodes if nodes else 1
    if not whole:  # whole cores, and the processors of its memory
        for_memory = math.ceil((asked.memory or 0) / queue.most_memory) if queue.most_memory else 1
        each = round_up(max(each, for_memory), queue.processor_step)
        processors = each * nodes if nodes else round_up(processors, each)
    default = None if queue.default_memory is None else queue.default_memory * each
    unit = Need(
        chunks=1,
        processors=each,
        memory=asked.memory or default or 0,
        gpus=asked.gpus,
        gpu_type=asked.gpu_type,
        scatter=nodes is not None,
        whole_nodes=whole,
        nodes=None if len(ours) == len(queue.nodes) else ours,
    )
    return StartRequest(processors=processors, tr=asked.tr, unit=unit)


def _usual_size(asked: AskedRequest, queue: QueueState) -> int:
    """Processors of most of the nodes that have the memory and the GPUs."""
    sizes = Counter(node.processors for node in usable(queue) if _has(node, asked))
    if not sizes:
        sizes = Counter(node.processors for node in usable(queue))
    if not sizes:
        raise UsageError("the nodes are not known here; say how many processors (-p)")
    return sizes.most_common(1)[0][0]


def _has(node: Node, asked: AskedRequest) -> bool:
    memory = node.memory is None or (asked.memory or 0) <= node.memory
    return memory and node.gpus_of(asked.gpu_type) >= asked.gpus


def why_never(request: StartRequest, queue: QueueState) -> str:
    """Why no such request can ever start, however long it waits; empty: one can."""
    unit, needs = request.unit, counted(request.processors, "processor")
    if unit is None:
        most = queue.processors
        return "" if request.processors <= most else f"it needs {needs}, and there are {most}"
    part = TaskSize(
        processors=unit.processors, memory=unit.memory or None, gpus=unit.gpus, gpu_type=unit.gpu_type
    )
    if unit.processors > 1 or unit.memory or unit.gpus:
        why = why_no_node_holds(msgspec.structs.replace(queue, partitions={}), part)
        if why:
            return f"it{why.removeprefix('each')}"
    most = processors_for(unit, queue, all_nodes=True)
    if request.processors <= most:
        return ""
    if unit.scatter:
        nodes = request.processors // unit.processors
        return f"it needs {counted(nodes, 'node')}, and {most // unit.processors} of the site would do"
    return f"it needs {needs}, and the nodes have {most}"


def beyond(request: StartRequest, limit: str, value: float, source: str) -> str:
    """Why a request is refused by a limit on its `processors` or `seconds`; empty: it keeps within it."""
    asks = request.tr if limit == "seconds" else request.processors
    if asks <= value:
        return ""
    if limit == "seconds":
        return f"it asks for {format_duration(asks)}, and {format_duration(value)} is the most ({source})"
    return f"it asks for {counted(int(asks), 'processor')}, and {value:g} is the most ({source})"
