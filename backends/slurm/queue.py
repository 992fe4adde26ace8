"""The rows of squeue, sinfo and scontrol to the state of a site's queue. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.reports import JobState
from backends.hidden import HIDDEN, with_hidden
from backends.slurm.nodes import SiteNode, SiteNodes
from backends.slurm.reasons import is_considered
from backends.slurm.rows import QueueRow, Reservation
from backends.slurm.states import job_state

LINGER = 60.0
"""Seconds for which a job is taken to hold its nodes that is past its limit or completing."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    site: SiteNodes
    jobs: Sequence[QueueRow]
    reservations: Sequence[Reservation] = ()
    tiers: Mapping[str, int] = {}
    """Each partition's tier; those with a higher one are considered first."""
    whole_nodes: bool = False


def queue_state(seen: Observation) -> QueueState:
    """What a planner needs to know.

    A job that runs on nodes of the site and on others is taken to have the same number of processors
    on each. Where only whole nodes are given, a node that is partly in use is wholly so.
    """
    return QueueState(
        now=seen.now,
        processors=seen.site.processors,
        running=(*_running_jobs(seen), *_active_reservations(seen)),
        pending=(*_coming_reservations(seen), *_pending(seen)),
        nodes=seen.site.sizes,
    )


def _running_jobs(seen: Observation) -> list[RunningJob]:
    held = _holders(seen)
    return _by_node(seen, held) if seen.whole_nodes else _by_job(seen, held)


class _Holder(msgspec.Struct, frozen=True):
    """A job's part on the nodes of the site."""

    id: str
    processors: int
    end: float
    nodes: list[SiteNode]


def _holders(seen: Observation) -> list[_Holder]:
    found = []
    for row in seen.jobs:
        nodes = seen.site.among(row.nodes)
        if not nodes or row.state == "SUSPENDED" or job_state(row.state) is not JobState.RUNNING:
            continue
        share = math.ceil(row.processors * len(nodes) / len(row.nodes))
        found.append(_Holder(row.id, share, _end(seen, row, nodes), nodes))
    return found


def _end(seen: Observation, row: QueueRow, nodes: list[SiteNode]) -> float:
    """When its processors are free for us: by its limit, and not while a reservation has its nodes."""
    if row.state == "COMPLETING":
        end = seen.now + LINGER
    elif row.end is None:
        end = math.inf
    else:
        end = row.end if row.end > seen.now else seen.now + LINGER
    names = {node.name for node in nodes}
    blocked = [held.end for held in _active(seen) if names.intersection(held.nodes)]
    return max([end, *blocked])


def _by_job(seen: Observation, held: Iterable[_Holder]) -> list[RunningJob]:
    jobs = [RunningJob(holder.id, holder.processors, holder.end) for holder in held]
    return with_hidden(jobs, sum(node.allocated for node in seen.site.nodes.values()))


def _by_node(seen: Observation, held: Iterable[_Holder]) -> list[RunningJob]:
    """Each used node counts whole, with the last of its jobs and until that one ends."""
    last: dict[str, tuple[float, str]] = {
        name: (math.inf, HIDDEN) for name, node in seen.site.nodes.items() if node.allocated
    }
    explained: dict[str, tuple[float, str]] = {}
    for holder in held:
        for node in holder.nodes:
            explained[node.name] = max(explained.get(node.name, (0.0, "")), (holder.end, holder.id))
    sizes: dict[tuple[float, str], int] = defaultdict(int)
    for name, holding in {**last, **explained}.items():
        sizes[holding] += seen.site.nodes[name].processors
    return [RunningJob(id, processors, end) for (end, id), processors in sorted(sizes.items())]


def _active(seen: Observation) -> list[Reservation]:
    return [held for held in seen.reservations if held.start <= seen.now < held.end]


def _active_reservations(seen: Observation) -> list[RunningJob]:
    """What reservations keep from us now, beside the jobs that run on their nodes."""
    found = []
    for held in _active(seen):
        idle = sum(_idle(node, seen.whole_nodes) for node in seen.site.among(held.nodes))
        if idle:
            found.append(RunningJob(f"reservation {held.name}", idle, held.end))
    return found


def _idle(node: SiteNode, whole_nodes: bool) -> int:
    if whole_nodes and node.allocated:
        return 0
    return node.processors - node.allocated


def _coming_reservations(seen: Observation) -> list[PendingJob]:
    coming = [held for held in seen.reservations if held.start > seen.now and seen.site.among(held.nodes)]
    return [
        PendingJob(
            f"reservation {held.name}",
            sum(node.processors for node in seen.site.among(held.nodes)),
            held.end - held.start,
            held.start,
        )
        for held in coming
    ]


def _pending(seen: Observation) -> list[PendingJob]:
    waiting = [
        row
        for row in seen.jobs
        if job_state(row.state) is JobState.QUEUED
        and seen.site.related.intersection(row.partitions)
        and is_considered(row.state, row.reason)
    ]
    waiting.sort(key=lambda row: (-_tier(seen, row), -row.priority))
    size = seen.site.usual_size
    return [job for row in waiting for job in _pending_jobs(seen, row, size)]


def _tier(seen: Observation, row: QueueRow) -> int:
    return max(seen.tiers.get(partition, 1) for partition in row.partitions)


def _pending_jobs(seen: Observation, row: QueueRow, size: int) -> list[PendingJob]:
    """One, or of an array as many as it has elements; the plan that Slurm shows is the first one's."""
    processors = _wanted(seen, row, size)
    if not processors:
        return []
    planned = None if row.start is None else max(row.start, seen.now)
    first, *others = elements(row.id)
    return [
        PendingJob(first, processors, row.limit, planned),
        *(PendingJob(other, processors, row.limit) for other in others),
    ]


def _wanted(seen: Observation, row: QueueRow, size: int) -> int:
    """Processors of the site that a waiting job will take; 0 where it is planned on other nodes.

    `size`: processors of a usual node, which takes a look at all nodes.
    """
    wanted = row.processors
    if seen.whole_nodes or row.exclusive:
        wanted = size * max(row.node_count, math.ceil(row.processors / size))
    if row.planned_nodes:
        wanted = math.ceil(wanted * len(seen.site.among(row.planned_nodes)) / len(row.planned_nodes))
    if seen.site.partition not in row.partitions:
        wanted = min(wanted, seen.site.processors)
    return wanted


_ARRAY = re.compile(r"(\d+)_\[([\d,:-]+)(?:%(\d+))?\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def elements(id: str) -> list[str]:
    """The ids of the elements of `123_[1-5,7]` that may start; any other id stands for itself.

    Of `123_[1-5%2]` only two may run at the same time, so these are its first two.
    """
    match = _ARRAY.fullmatch(id)
    if match is None:
        return [id]
    ids = [f"{match[1]}_{index}" for part in match[2].split(",") for index in _indices(part)]
    return ids[: int(match[3])] if match[3] else ids


def _indices(part: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None:
        return range(0)
    first = int(match[1])
    return range(first, int(match[2] or first) + 1, int(match[3] or 1))
