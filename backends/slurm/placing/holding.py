"""What running jobs and reservations hold of each node of a site. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from adaptor.model import RunningJob
from adaptor.resources import Node, Part
from backends.hidden import HIDDEN
from backends.slurm.nodes import SiteNode, SiteNodes
from backends.slurm.placing.exclusivity import NOTHING
from backends.slurm.placing.gres import named_as, total, without
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.rows import QueueRow


def held_parts(site: SiteNodes, row: QueueRow, detail: JobDetail | None) -> tuple[Part, ...]:
    """Of a job that runs, on nodes of the site in service.

    One that has nodes for itself holds them wholly. Where the details do not agree with squeue, the job is
    taken to have the same number of processors on each of its nodes.
    """
    there = site.present(row.nodes)
    if detail is not None and detail.exclusive != NOTHING:
        return tuple(whole(node.machine) for node in there)
    known = {part.node: part for part in detail.parts} if detail and _agree(row, detail) else None
    if known is None:
        return _even(row, there)
    return tuple(_as_counted(site, node.machine, known[node.name]) for node in there)


def suspended_parts(site: SiteNodes, row: QueueRow, detail: JobDetail | None) -> tuple[Part, ...]:
    """Its memory and GPUs; its processors are free for others."""
    if detail is None or not _agree(row, detail):
        return ()
    known = {part.node: part for part in detail.parts}
    parts = (_as_counted(site, node.machine, known[node.name]) for node in site.present(row.nodes))
    return tuple(
        Part(node=part.node, processors=0, memory=part.memory, gpus=part.gpus)
        for part in parts
        if part.memory or part.gpus
    )


def whole(node: Node) -> Part:
    return Part(node=node.name, processors=node.processors, memory=node.memory or 0, gpus=node.gpus)


def rest(node: SiteNode) -> Part:
    """What is in use by nobody."""
    machine = node.machine
    return Part(
        node=node.name,
        processors=max(0, machine.processors - node.allocated),
        memory=max(0, (machine.memory or 0) - node.used_memory),
        gpus=without(machine.gpus, node.used_gpus),
    )


def usable_processors(site: SiteNodes, parts: Iterable[Part]) -> int:
    """Of nodes on which our requests may run."""
    return sum(part.processors for part in parts if part.node in site.nodes)


def hidden_job(site: SiteNodes, jobs: Iterable[RunningJob]) -> list[RunningJob]:
    """What the nodes report as held beyond these jobs, as one job without an end; none where there is none.

    Where the parts of a job are not known, one node may seem to hold too little as another holds too much.
    """
    seen: defaultdict[str, list[Part]] = defaultdict(list)
    for job in jobs:
        for part in job.parts:
            seen[part.node].append(part)
    too_much = sum(
        max(0, sum(part.processors for part in seen[node.name]) - node.allocated)
        for node in site.all_present()
    )
    parts = []
    for node in site.all_present():
        part = _beyond(node, seen[node.name])
        given = min(too_much, part.processors)
        too_much -= given
        part = Part(node=part.node, processors=part.processors - given, memory=part.memory, gpus=part.gpus)
        if part.processors or part.memory or part.gpus:
            parts.append(part)
    return [RunningJob(HIDDEN, usable_processors(site, parts), math.inf, tuple(parts))] if parts else []


def _beyond(node: SiteNode, seen: Iterable[Part]) -> Part:
    parts = list(seen)
    return Part(
        node=node.name,
        processors=max(0, node.allocated - sum(part.processors for part in parts)),
        memory=max(0, node.used_memory - sum(part.memory for part in parts)),
        gpus=without(node.used_gpus, total(part.gpus for part in parts)),
    )


def _agree(row: QueueRow, detail: JobDetail) -> bool:
    names = [part.node for part in detail.parts]
    held = sum(part.processors for part in detail.parts)
    return sorted(names) == sorted(row.nodes) and held == row.processors


def _even(row: QueueRow, there: list[SiteNode]) -> tuple[Part, ...]:
    if not there:
        return ()
    share = math.ceil(row.processors * len(there) / len(row.nodes))
    each, more = divmod(share, len(there))
    return tuple(Part(node=node.name, processors=each + (number < more)) for number, node in enumerate(there))


def _as_counted(site: SiteNodes, node: Node, part: Part) -> Part:
    return Part(
        node=part.node,
        processors=part.processors,
        memory=part.memory if site.memory_counted else 0,
        gpus=named_as(part.gpus, node.gpus),
    )
