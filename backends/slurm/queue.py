"""The rows of squeue, sinfo and scontrol to common rows, and to the state of a site's queue. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from adaptor.model import Allowed, QueueState, RunningJob
from adaptor.reports import JobState
from adaptor.resources import Need
from backends.observed.rows import Amounts, JobRow, ReservationRow
from backends.observed.site import HeldByNode
from backends.observed.state import KnownJobs, Observation, end_of
from backends.observed.state import queue_state as state_of
from backends.slurm.nodes import PartitionNodes
from backends.slurm.ordering import Ordering
from backends.slurm.placing.exclusivity import NOTHING
from backends.slurm.placing.gres import License, free_from
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.placing.needs import SlurmNeeds
from backends.slurm.placing.restriction import parse_licenses
from backends.slurm.reasons import is_considered, job_state
from backends.slurm.rows import QueueRow


class SlurmSeen(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    site: PartitionNodes
    jobs: Sequence[QueueRow]
    reservations: Sequence[ReservationRow] = ()
    tiers: Mapping[str, int] = {}
    """Tiers of partitions by name; higher tiers are considered first."""
    whole_nodes: bool = False
    details: Mapping[str, JobDetail] = {}
    """Details of jobs, by their ids."""
    wanted_licenses: Mapping[str, int] = {}
    """Licences that each request of the site takes, by name."""
    licenses: Mapping[str, License] = {}
    ordering: Ordering = Ordering()
    user: str = ""
    """Name of our user."""
    allowed: Allowed = Allowed()
    unknown: Sequence[str] = ()
    """Sentences on answers of Slurm that are not known, as in `QueueState`."""
    known: KnownJobs = msgspec.field(default_factory=KnownJobs)


def queue_state(seen: SlurmSeen) -> QueueState:
    """State of the queue, for planners, with the bounds other than nodes that keep our requests waiting."""
    rows = _rows(seen)
    state = state_of(
        Observation(
            now=seen.now,
            site=seen.site,
            jobs=rows,
            reservations=seen.reservations,
            whole_nodes=seen.whole_nodes,
            memory_step=2**20,
            unknown=seen.unknown,
            allowed=seen.allowed,
            known=seen.known,
        )
    )
    waits = (*_scarce_licenses(seen, rows), *_untested(seen, rows))
    return msgspec.structs.replace(state, running=(*state.running, *waits))


def job_row(
    row: QueueRow, detail: JobDetail | None = None, *, tier: int = 1, need: Need | None = None
) -> JobRow:
    """The row of a job. If details and squeue disagree, the amounts that the job holds of each node are
    unknown."""
    state = _state(row)
    waits, ended = state == "waiting", state == "unknown"
    alone = detail is not None and detail.exclusive != NOTHING
    return JobRow(
        id=row.id,
        elements=tuple(elements(row.id)) if "[" in row.id else (row.id,),
        user=detail.user if detail is not None else "",
        queues=row.partitions,
        state=state,
        limit=row.limit,
        # A suspended job ends later than it says, by as long.
        end=math.inf if row.end is None or state == "suspended" else row.end,
        processors=row.processors,
        node_count=row.node_count,
        exclusive=alone and state != "suspended",
        nodes=row.nodes,
        holds={} if waits or ended else _holds(row, detail),
        leaving=state == "running" and _is_cut_short(row),
        considered=waits and is_considered(row.state, row.reason),
        place=(-tier, -row.priority, *_turn(row.id)),
        planned_start=row.start if waits else None,
        plan=dict.fromkeys(row.planned_nodes),
        need=need,
    )


def _state(row: QueueRow) -> Literal["waiting", "running", "ending", "suspended", "unknown"]:
    known = job_state(row.state)
    if known is JobState.QUEUED:
        return "waiting"
    if known is not JobState.RUNNING:
        return "unknown"
    return "ending" if row.state == "COMPLETING" else "suspended" if row.state == "SUSPENDED" else "running"


def _is_cut_short(row: QueueRow) -> bool:
    """Whether Slurm has told it to make room: within the grace time its end comes before its limit."""
    return row.start is not None and row.end is not None and row.end < row.start + row.limit - 1


def _holds(row: QueueRow, detail: JobDetail | None) -> dict[str, Amounts] | None:
    """Amounts by node; for a suspended job memory and GPUs, as its processors are free for others."""
    suspended = row.state == "SUSPENDED"
    parts = detail.parts if detail is not None else ()
    agree = sorted(part.node for part in parts) == sorted(row.nodes)
    if not agree or sum(part.processors for part in parts) != row.processors:
        return {} if suspended or not row.nodes else None
    held = {part.node: part for part in parts}
    return {
        name: Amounts(0 if suspended else held[name].processors, held[name].memory, held[name].gpus)
        for name in row.nodes
    }


def _rows(seen: SlurmSeen) -> list[JobRow]:
    needs = SlurmNeeds(seen.site, whole_nodes=seen.whole_nodes)
    tiers = {
        names: max(seen.tiers.get(name, 1) for name in names)
        for names in {row.partitions for row in seen.jobs}
    }
    return seen.known.rows.of(
        lambda row, detail: _made(seen, row, detail, tiers[row.partitions], needs),
        seen.jobs,
        [*map(seen.details.get, [row.id for row in seen.jobs])],
        under=(tiers, needs.under, seen.user, seen.site.threads),
    )


def _made(seen: SlurmSeen, row: QueueRow, detail: JobDetail | None, tier: int, needs: SlurmNeeds) -> JobRow:
    """Nodes that a job shares with jobs of its user, it shares with those of ours."""
    if detail is not None and detail.exclusive == "USER" and detail.user == seen.user:
        detail = msgspec.structs.replace(detail, exclusive=NOTHING)
    if seen.site.threads:
        row, detail = _in_cores(row, detail, seen.site.threads)
    return job_row(row, detail, tier=tier, need=needs.of(row, detail))


def _in_cores(
    row: QueueRow, detail: JobDetail | None, threads: Mapping[str, int]
) -> tuple[QueueRow, JobDetail | None]:
    """A job in processors of ours, which are cores. `threads`: by node."""
    usual = max(threads.values())
    processors = math.ceil(row.processors / usual)
    if detail is not None and detail.parts:
        parts = tuple(
            msgspec.structs.replace(part, processors=math.ceil(part.processors / threads.get(part.node, 1)))
            for part in detail.parts
        )
        agrees = sum(part.processors for part in detail.parts) == row.processors
        processors = sum(part.processors for part in parts) if agrees else processors
        detail = msgspec.structs.replace(detail, parts=parts)
    if detail is not None and detail.wish is not None:
        each = math.ceil(detail.wish.processors_per_task / usual)
        detail = msgspec.structs.replace(
            detail, wish=msgspec.structs.replace(detail.wish, processors_per_task=each)
        )
    return msgspec.structs.replace(row, processors=processors), detail


def _scarce_licenses(seen: SlurmSeen, rows: Iterable[JobRow]) -> Iterator[RunningJob]:
    """Holds until enough are free of each licence that our requests take: none of ours starts before."""
    if not seen.wanted_licenses:
        return
    held = [
        (end_of(row, seen.now), parse_licenses(detail.licenses))
        for row in rows
        if (detail := seen.details.get(row.id)) and detail.licenses
    ]
    idle = {name: node.has.beyond(node.held) for name, node in seen.site.listed.items()}
    for name, end in free_from(seen.now, seen.wanted_licenses, seen.licenses, held).items():
        yield _all_of(seen, f"licence {name}", end, idle)


def _untested(seen: SlurmSeen, rows: Iterable[JobRow]) -> Iterator[RunningJob]:
    """Holds until enough jobs ahead have started for backfill to look at ours: none of ours starts before.

    A new request stands behind our waiting ones, or else behind all jobs.
    """
    tested = seen.ordering.tested
    waiting = [row for row in rows if row.waits]
    if tested is None or len(waiting) < tested:
        return
    last = max((row.place for row in waiting if seen.user and row.user == seen.user), default=None)
    ahead = waiting if last is None else [row for row in waiting if row.place <= last]
    starts = sorted(row.planned_start for row in ahead if row.planned_start is not None)
    if len(ahead) < tested or not starts:
        return
    until = starts[min(len(ahead) - tested, len(starts) - 1)]
    if until > seen.now and seen.site.listed:
        everything = {name: node.has for name, node in seen.site.listed.items()}
        yield _all_of(seen, f"beyond {tested} jobs", until, everything)


def _all_of(seen: SlurmSeen, id: str, end: float, held: HeldByNode) -> RunningJob:
    return RunningJob(id, seen.site.processors_of(held), end, seen.site.parts_of(held))


def _turn(id: str) -> tuple[int, int]:
    """Key by which jobs of equal priority stand in the order of their submission: 12 and 3 for `12_[3-5]`, 12
    and 0 or 1 for `12` and `12+1`."""
    if id.isdecimal():
        return int(id[:18]), 0
    job, *element = re.findall("[0-9]{1,18}", id)[:2] or ["0"]
    return int(job), int(element[0]) if element else 0


_NUMBER = r"[0-9]{1,10}"
_ARRAY = re.compile(rf"({_NUMBER})_\[([0-9,:-]+)(?:%({_NUMBER}))?\]")
_RANGE = re.compile(rf"({_NUMBER})(?:-({_NUMBER})(?::({_NUMBER}))?)?")
MOST_ELEMENTS = 100_000  # of one array; what waits behind more is not predicted anyway


def elements(id: str) -> list[str]:
    """The ids of the elements of `123_[1-5,7]` that may start; any other id stands for itself.

    Of `123_[1-5%2]` only two may run at the same time, so these are its first two.
    """
    match = _ARRAY.fullmatch(id) if "[" in id else None
    return [id] if match is None else _elements(match, min(int(match[3] or MOST_ELEMENTS), MOST_ELEMENTS))


def waiting_elements(id: str) -> list[str]:
    """All that `123_[1-5%2]` stands for, those among them that may not start before others end."""
    match = _ARRAY.fullmatch(id) if "[" in id else None
    return [id] if match is None else _elements(match, MOST_ELEMENTS)


def _elements(match: re.Match[str], most: int) -> list[str]:
    indices = (index for part in match[2].split(",") for index in _indices(part))
    return [f"{match[1]}_{index}" for index in itertools.islice(indices, most)]


def _indices(part: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None:
        return range(0)
    first = int(match[1])
    return range(first, int(match[2] or first) + 1, max(1, int(match[3] or 1)))
