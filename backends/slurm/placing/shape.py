"""Parts for which a request asks Slurm, and whether its nodes can ever hold them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.crafting.fits import part_of, tasks_on, why_no_node_holds, width
from adaptor.model import QueueState
from adaptor.resources import Node, TaskSize
from backends.base import PilotOrder
from backends.observed.site import SiteNodes
from backends.shape import RequestParts
from backends.slurm.nodes import PartitionNodes

MEBIBYTE = 2**20
_KEPT_AWAY = (
    "constraint, exclude, nodelist and gres of this site (or the same in extra_args) leave none of the nodes"
)


class SlurmShape(RequestParts, frozen=True, kw_only=True):
    """The part of whole nodes is the least that each must have."""

    least_nodes: int = 1
    """Nodes at least, which Slurm does not see to by itself (MinTRES=node)."""
    shares: int = 1
    """Slurm's processors by which it counts the memory of each processor of ours (`PartitionNodes`)."""

    def options(self) -> list[str]:
        return self._of_nodes() if self.whole_nodes else self._of_tasks()

    def _of_tasks(self) -> list[str]:
        part = self.part
        options = [f"--ntasks={self.count}", f"--cpus-per-task={part.processors}"]
        if part.memory is not None:
            share = math.ceil(part.memory // part.processors / MEBIBYTE / self.shares)
            options.append(f"--mem-per-cpu={share}M")
        if self.least_nodes > 1:
            options.append(f"--nodes={self.least_nodes}-{max(self.least_nodes, self.count)}")
        return options + ([f"--gpus-per-task={gpus_option(part)}"] if part.gpus else [])

    def _of_nodes(self) -> list[str]:
        """Options for whole nodes. With `--mem` a node must have this, and the request gets no more; 0:
        all."""
        part = self.part
        memory = "0" if part.memory is None else f"{part.memory // MEBIBYTE}M"
        options = [f"--nodes={self.count}", "--exclusive", f"--mem={memory}"]
        if part.processors > 1:
            options.append(f"--mincpus={part.processors}")
        return options + ([f"--gpus-per-node={gpus_option(part)}"] if part.gpus else [])


def gpus_option(part: TaskSize) -> str:
    return f"{part.gpu_type}:{part.whole_gpus}" if part.gpu_type else str(part.whole_gpus)


def shape_of(order: PilotOrder, site: SiteNodes, *, per_node: int | None) -> SlurmShape:
    """The shape of an order for no particular node.

    Args:
        per_node: processors of a node where only whole nodes are asked for.
    """
    nodes = site.machines
    if nodes and all(node.memory is None for node in nodes):  # Slurm knows of 1 MiB, and would refuse more
        order = msgspec.structs.replace(order, task=msgspec.structs.replace(order.task, memory=None))
    task = order.task
    if per_node is None and task.nodes == 1:
        return _in_tasks(order, site)
    size = per_node if task.nodes == 1 else width(as_queue(site), task) // task.nodes
    return _in_nodes(math.ceil(order.request.p / (size or 1)), task, nodes)


def _in_tasks(order: PilotOrder, site: SiteNodes) -> SlurmShape:
    """Tasks that share a GPU, or a core, are one part: all of it lies on one node."""
    part, _ = part_of(as_queue(site), order.task)
    memory, most = site.default_memory, site.request_memory if isinstance(site, PartitionNodes) else None
    if memory is not None and most is not None:
        memory = max(MEBIBYTE, min(memory, most // part.processors // MEBIBYTE * MEBIBYTE))
    if part.memory is not None:  # Slurm counts whole MiB for each processor
        memory = math.ceil(part.memory / part.processors / MEBIBYTE) * MEBIBYTE
    return SlurmShape(
        count=order.request.p // part.processors,
        shares=site.memory_shares if isinstance(site, PartitionNodes) else 1,
        least_nodes=site.least_nodes if isinstance(site, PartitionNodes) else 1,
        part=msgspec.structs.replace(part, memory=None if memory is None else memory * part.processors),
    )


def _in_nodes(count: int, task: TaskSize, nodes: Sequence[Node]) -> SlurmShape:
    """Shape on whole nodes, with memory and GPUs that all nodes have that hold a task: each of these will
    do."""
    holding = [node for node in nodes if node.ours and tasks_on(node, task)]
    memory, gpus = task.memory, task.whole_gpus
    if memory is not None:
        memory = min((node.memory for node in holding if node.memory is not None), default=memory)
        memory = max(memory, math.ceil(task.memory or 0))
    if gpus:
        gpus = min((node.gpus_of(task.gpu_type) for node in holding), default=gpus)
    part = TaskSize(processors=task.processors, memory=memory, gpus=gpus, gpu_type=task.gpu_type)
    return SlurmShape(count=count, part=part, whole_nodes=True)


def misfit(shape: SlurmShape, task: TaskSize, site: SiteNodes) -> str:
    """Why a request of this shape would never start, even with all nodes idle; empty where it would, or where
    no nodes are known."""
    nodes, partition = site.machines, site.name
    if not any(node.ours for node in nodes):
        return f"{_KEPT_AWAY} of partition {partition}; `adaptor site check` shows more" if nodes else ""
    reason = why_no_node_holds(as_queue(site), task)
    if reason:
        return f"no node of partition {partition} can run its tasks: {reason}"
    held = shape.held_by(nodes)
    if held >= shape.count:
        return ""
    kind = "whole nodes" if shape.whole_nodes else "parts, each on one node,"
    return (
        f"{shape.count} {kind} with {shape.wanted} were asked for, but all nodes of partition "
        f"{partition} together hold {held}: lower `limits.max_proc` of this site, or ask for less per "
        "task"
    )


def as_queue(site: SiteNodes) -> QueueState:
    """The site as a queue state without jobs, which decides in which parts requests are made."""
    return QueueState(
        now=0,
        processors=sum(node.processors for node in site.machines if node.ours),
        nodes=site.machines,
        processor_step=site.processor_step,
        most_memory=site.most_memory,
    )
