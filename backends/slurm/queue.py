"""The rows of squeue, sinfo and scontrol to the state of a site's queue. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.reports import JobState
from adaptor.resources import Part
from backends.hidden import HIDDEN
from backends.slurm.nodes import SiteNodes
from backends.slurm.ordering import Ordering
from backends.slurm.placing.exclusivity import NOTHING
from backends.slurm.placing.holding import (
    held_parts,
    hidden_job,
    rest,
    suspended_parts,
    usable_processors,
    whole,
)
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.placing.licenses import License, free_from
from backends.slurm.placing.needs import NOWHERE, Needs
from backends.slurm.placing.restriction import parse_licenses
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
    default_limit: float | None = None
    """Seconds of a job that names none."""
    details: Mapping[str, JobDetail] = {}
    """Of jobs, by their ids."""
    wanted_licenses: Mapping[str, int] = {}
    """That every request of the site takes."""
    licenses: Mapping[str, License] = {}
    ordering: Ordering = Ordering()
    user: str = ""
    """Ours."""
    unknown: Sequence[str] = ()
    """See `backends.slurm.unknown`."""


def queue_state(seen: Observation) -> QueueState:
    """What a planner needs to know.

    Where only whole nodes are given, a node that is partly in use is wholly so.
    """
    return QueueState(
        now=seen.now,
        processors=seen.site.processors,
        running=(
            *_running_jobs(seen),
            *_active_reservations(seen),
            *_scarce_licenses(seen),
            *_untested(seen),
        ),
        pending=(*_coming_reservations(seen), *_pending(seen)),
        nodes=seen.site.machines,
        default_memory=seen.site.default_memory,
        default_limit=seen.default_limit,
        memory_step=2**20,
        unknown=tuple(seen.unknown),
        loses_age=seen.ordering.loses_age,
        owners={
            each: detail.user
            for row in seen.jobs
            if (detail := _detail(seen, row)) and detail.user
            for each in (elements(row.id) if "[" in row.id else (row.id,))
        },
        # A job that is past its limit, or was suspended, started at another time than its end tells.
        limits={
            row.id: row.limit
            for row in seen.jobs
            if row.state == "RUNNING" and row.end is not None and row.end > seen.now
        },
    )


def _detail(seen: Observation, row: QueueRow) -> JobDetail | None:
    """What is known of a job; nodes that it shares with jobs of its user, it shares with those of ours."""
    detail = seen.details.get(row.id)
    if detail is not None and detail.exclusive == "USER" and detail.user == seen.user:
        return msgspec.structs.replace(detail, exclusive=NOTHING)
    return detail


def _running_jobs(seen: Observation) -> list[RunningJob]:
    held = _holders(seen)
    if seen.whole_nodes:
        return _by_node(seen, held)
    jobs = [
        RunningJob(each.id, usable_processors(seen.site, each.parts), each.end, each.parts) for each in held
    ]
    return [*jobs, *hidden_job(seen.site, jobs)]


class _Holder(msgspec.Struct, frozen=True):
    """A job's part on the nodes of the site."""

    id: str
    end: float
    parts: tuple[Part, ...]


def _holders(seen: Observation) -> list[_Holder]:
    found = []
    for row in seen.jobs:
        if not row.nodes or job_state(row.state) is not JobState.RUNNING:
            continue
        parts_of = suspended_parts if row.state == "SUSPENDED" else held_parts
        parts = parts_of(seen.site, row, _detail(seen, row))
        if parts:
            found.append(_Holder(row.id, _end(seen, row, parts), parts))
    return found


def _end(seen: Observation, row: QueueRow, parts: Iterable[Part]) -> float:
    """When its processors are free for us: by its limit, and not while a reservation has its nodes."""
    if row.state == "COMPLETING":
        end = seen.now + LINGER
    elif row.end is None or row.state == "SUSPENDED":  # it then ends later than it says, by as long
        end = math.inf
    else:
        end = row.end if row.end > seen.now else seen.now + LINGER
    names = {part.node for part in parts}
    blocked = [held.end for held in _active(seen) if names.intersection(held.nodes)]
    return max([end, *blocked])


def _by_node(seen: Observation, held: Iterable[_Holder]) -> list[RunningJob]:
    """Each used node counts whole, with the last of its jobs and until that one ends."""
    last: dict[str, tuple[float, str]] = {
        node.name: (math.inf, HIDDEN) for node in seen.site.all_present() if node.allocated
    }
    explained: dict[str, tuple[float, str]] = {}
    for holder in held:
        for part in holder.parts:
            explained[part.node] = max(explained.get(part.node, (0.0, "")), (holder.end, holder.id))
    parts: dict[tuple[float, str], list[Part]] = defaultdict(list)
    for node in seen.site.present({**last, **explained}):
        parts[explained.get(node.name) or last[node.name]].append(whole(node.machine))
    return [
        RunningJob(id, usable_processors(seen.site, nodes), end, tuple(nodes))
        for (end, id), nodes in sorted(parts.items())
    ]


def _active(seen: Observation) -> list[Reservation]:
    return [held for held in seen.reservations if held.start <= seen.now < held.end]


def _active_reservations(seen: Observation) -> list[RunningJob]:
    """What reservations keep from us now, beside the jobs that run on their nodes."""
    found = []
    for held in _active(seen):
        idle = [
            rest(node) for node in seen.site.present(held.nodes) if not (seen.whole_nodes and node.allocated)
        ]
        parts = tuple(part for part in idle if part.processors or part.memory or part.gpus)
        if parts:
            processors = usable_processors(seen.site, parts)
            found.append(RunningJob(f"reservation {held.name}", processors, held.end, parts))
    return found


def _scarce_licenses(seen: Observation) -> list[RunningJob]:
    """Nothing of ours starts before enough are free of each licence that our requests take."""
    if not seen.wanted_licenses:
        return []
    held = [
        (_end(seen, row, ()), parse_licenses(detail.licenses))
        for row in seen.jobs
        if (detail := _detail(seen, row)) and detail.licenses
    ]
    parts = tuple(map(rest, seen.site.all_present()))
    processors = usable_processors(seen.site, parts)
    waits = free_from(seen.now, seen.wanted_licenses, seen.licenses, held)
    return [RunningJob(f"licence {name}", processors, end, parts) for name, end in waits.items()]


def _untested(seen: Observation) -> list[RunningJob]:
    """Nothing of ours starts before enough jobs ahead have that backfill looks at it.

    A new request stands behind those of ours that wait, or else behind all jobs.
    """
    tested = seen.ordering.tested
    waiting = _in_order(seen, _considered(seen))
    if tested is None or len(waiting) < tested:
        return []
    own = [place for place, row in enumerate(waiting, 1) if seen.user and _owner(seen, row) == seen.user]
    ahead = waiting[: max(own, default=len(waiting))]
    starts = sorted(row.start for row in ahead if row.start is not None)
    if len(ahead) < tested or not starts:
        return []
    until = starts[min(len(ahead) - tested, len(starts) - 1)]
    parts = _whole_nodes(seen, (node.name for node in seen.site.all_present()))
    if until <= seen.now or not parts:
        return []
    return [RunningJob(f"beyond {tested} jobs", usable_processors(seen.site, parts), until, parts)]


def _owner(seen: Observation, row: QueueRow) -> str:
    detail = _detail(seen, row)
    return detail.user if detail is not None else ""


def _considered(seen: Observation) -> list[QueueRow]:
    return [
        row
        for row in seen.jobs
        if job_state(row.state) is JobState.QUEUED and is_considered(row.state, row.reason)
    ]


def _in_order(seen: Observation, rows: Iterable[QueueRow]) -> list[QueueRow]:
    """As Slurm considers them: of equal priority, those submitted first, elements of an array by index."""
    return sorted(rows, key=lambda row: (-_tier(seen, row), -row.priority, *_turn(row.id)))


def _turn(id: str) -> tuple[int, int]:
    """Of `12_[3-5]` 12 and 3, of `12` and `12+1` 12 and 0 or 1."""
    job, *element = re.findall("[0-9]{1,18}", id)[:2] or ["0"]
    return int(job), int(element[0]) if element else 0


def _coming_reservations(seen: Observation) -> list[PendingJob]:
    coming = []
    for held in seen.reservations:
        parts = _whole_nodes(seen, held.nodes)
        if held.start > seen.now and parts:
            processors = usable_processors(seen.site, parts)
            name, length = f"reservation {held.name}", held.end - held.start
            coming.append(PendingJob(name, processors, length, held.start, parts))
    return coming


def _whole_nodes(seen: Observation, names: Iterable[str]) -> tuple[Part, ...]:
    return tuple(whole(node.machine) for node in seen.site.present(names))


def _pending(seen: Observation) -> list[PendingJob]:
    waiting = _in_order(
        seen, (row for row in _considered(seen) if seen.site.related.intersection(row.partitions))
    )
    size = seen.site.usual_size
    needs = Needs(seen.site, whole_nodes=seen.whole_nodes)
    return [job for row in waiting for job in _pending_jobs(seen, row, size, needs)]


def _tier(seen: Observation, row: QueueRow) -> int:
    return max(seen.tiers.get(partition, 1) for partition in row.partitions)


def _pending_jobs(seen: Observation, row: QueueRow, size: int, needs: Needs) -> list[PendingJob]:
    """One, or of an array as many as it has elements; the plan that Slurm shows is the first one's."""
    processors = _wanted(seen, row, size)
    need = needs.of(row, _detail(seen, row))
    planned = None if row.start is None else max(row.start, seen.now)
    parts = () if planned is None else _whole_nodes(seen, row.planned_nodes)
    if not (processors or parts) or (need is not None and need.nodes == NOWHERE):
        return []
    first, *others = elements(row.id)
    return [
        PendingJob(first, processors, row.limit, planned, parts, need),
        *(PendingJob(other, processors, row.limit, need=need) for other in others),
    ]


def _wanted(seen: Observation, row: QueueRow, size: int) -> int:
    """Processors of the site that a waiting job will take; 0 where it is planned on other nodes.

    `size`: processors of a usual node, which takes a look at all nodes.
    """
    wanted = row.processors
    detail = _detail(seen, row)
    if seen.whole_nodes or (detail is not None and detail.exclusive != NOTHING):
        wanted = size * max(row.node_count, math.ceil(row.processors / size))
    if row.planned_nodes:
        wanted = math.ceil(wanted * len(seen.site.among(row.planned_nodes)) / len(row.planned_nodes))
    if seen.site.partition not in row.partitions:
        wanted = min(wanted, seen.site.processors)
    return wanted


_NUMBER = r"[0-9]{1,10}"
_ARRAY = re.compile(rf"({_NUMBER})_\[([0-9,:-]+)(?:%({_NUMBER}))?\]")
_RANGE = re.compile(rf"({_NUMBER})(?:-({_NUMBER})(?::({_NUMBER}))?)?")
MOST_ELEMENTS = 100_000
"""Of one array; what waits behind so many is not predicted anyway."""


def elements(id: str) -> list[str]:
    """The ids of the elements of `123_[1-5,7]` that may start; any other id stands for itself.

    Of `123_[1-5%2]` only two may run at the same time, so these are its first two.
    """
    match = _ARRAY.fullmatch(id)
    if match is None:
        return [id]
    most = min(int(match[3]), MOST_ELEMENTS) if match[3] else MOST_ELEMENTS
    indices = (index for part in match[2].split(",") for index in _indices(part))
    return [f"{match[1]}_{index}" for index in itertools.islice(indices, most)]


def _indices(part: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None:
        return range(0)
    first = int(match[1])
    return range(first, int(match[2] or first) + 1, max(1, int(match[3] or 1)))
