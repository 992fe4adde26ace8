"""What others do with the nodes of a site, for donation of idle ones (De Rose et al. 2008, §3). Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.donation.situation import NodeUse
from adaptor.reports import JobState, NodeReport
from backends.base import SchedulerError
from backends.donation import SOON
from backends.slurm.nodes import check_started, in_service, rows_of
from backends.slurm.reasons import is_considered
from backends.slurm.rows import NodeRow, QueueRow, Reservation
from backends.slurm.states import job_state

_ASLEEP = frozenset("~#$")
"""Powered off, powering up and under maintenance. Slurm itself would wake a node for a job; for a donation
that costs more than it yields."""


class NodesSeen(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    nodes: Sequence[NodeRow]
    """Those of `donatable`."""
    jobs: Sequence[QueueRow]
    donated: Collection[str]
    """Ids of the jobs by which nodes are donated."""
    reservations: Sequence[Reservation] = ()
    """Other than the one that we ourselves use."""


def donatable(rows: Collection[NodeRow], site: SiteConfig) -> list[NodeRow]:
    """One row for each node that requests of the site and donation may use, in Slurm's order.

    Raises:
        SchedulerError: there is no such partition, jobs that yield start from it nowhere on the site's
            nodes, or not at the moment.
    """
    own = rows_of(rows, site.partition)
    check_started(own[0].partition, own[0].available)
    named = site.donation.partition if site.donation else None
    if named is None:
        return own
    try:
        yielding = rows_of(rows, named)
        check_started(named, yielding[0].available)
    except SchedulerError as error:
        raise SchedulerError(f"donation.partition: {error}") from error
    there = {row.node for row in yielding}
    shared = [row for row in own if row.node in there]
    if not shared:
        raise SchedulerError(
            f"donation.partition: no node of partition {own[0].partition} is in partition {named}: "
            "name one whose jobs run on the same nodes"
        )
    return shared


def node_reports(seen: NodesSeen) -> list[NodeReport]:
    """What a donation needs to know of each node.

    A node is idle where no job but a pilot on a donated node holds anything of it, and none is about to start
    there. A node that is in use by jobs which we do not see (`PrivateData=jobs`) is taken.
    """
    return _Look(seen).reports()


class _Look:
    def __init__(self, seen: NodesSeen) -> None:
        self._seen = seen
        self._local = [job for job in seen.jobs if job.id not in seen.donated]
        donated = [job for job in seen.jobs if job.id in seen.donated]
        self._donated = {name for job in donated for name in job.nodes}
        self._awaited = {name for job in donated for name in job.planned_nodes}
        self._waiting = [job for job in self._local if _waits(job)]
        leaving = [job for job in donated if self._makes_room(job)]
        self._taken = {name for job in (*self._local, *leaving) for name in job.nodes}
        self._closed: set[str] = set()
        self._planned: dict[str, float] = {}
        self._look_at_plans()

    def reports(self) -> list[NodeReport]:
        return [
            NodeReport(
                name=row.node,
                processors=row.allocated + row.idle + row.other,
                memory=row.memory * 2**20,
                use=self._use(row),
                planned=self._planned_on(row),
            )
            for row in self._seen.nodes
        ]

    def _use(self, row: NodeRow) -> NodeUse:
        if not in_service(row) or row.state == "maint" or _ASLEEP.intersection(row.flags):
            return NodeUse.AWAY
        if row.node in self._closed:
            return NodeUse.AWAY
        starts = self._planned.get(row.node, math.inf)
        unseen = row.node not in self._donated and (row.allocated > 0 or row.state == "completing")
        if row.node in self._taken or starts <= self._seen.now + SOON or unseen:
            return NodeUse.TAKEN
        return NodeUse.IDLE

    def _planned_on(self, row: NodeRow) -> float:
        """At once where Slurm keeps the node for a job that we do not see."""
        if row.node in self._planned:
            return self._planned[row.node]
        kept = row.state == "planned" or "-" in row.flags
        return self._seen.now if kept and row.node not in self._awaited else math.inf

    def _makes_room(self, pilot: QueueRow) -> bool:
        """Whether it was told to leave, or ends while somebody waits: then it was told so most likely."""
        return _is_cut_short(pilot) or (pilot.state == "COMPLETING" and bool(self._waiting))

    def _look_at_plans(self) -> None:
        now = self._seen.now
        for job in self._waiting:
            if job.start is not None:
                self._plan(job.planned_nodes, job.start)
        for held in self._seen.reservations:
            if held.start <= now < held.end:
                self._closed.update(held.nodes)
            elif held.start > now:
                self._plan(held.nodes, held.start)

    def _plan(self, names: Sequence[str], start: float) -> None:
        for name in names:
            self._planned[name] = min(start, self._planned.get(name, math.inf))


def _waits(job: QueueRow) -> bool:
    """Whether it is queued, and Slurm looks for a place for it."""
    return job_state(job.state) is JobState.QUEUED and is_considered(job.state, job.reason)


def _is_cut_short(job: QueueRow) -> bool:
    """Whether Slurm has told it to make room: within the grace time its end comes before its limit."""
    if job.state == "COMPLETING" or job.start is None or job.end is None:
        return False
    return job.end < job.start + job.limit - 1
