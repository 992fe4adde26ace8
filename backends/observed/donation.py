"""Use of a site's machines by others, for donation of idle ones (De Rose et al. 2008, §3). Pure.

A machine is donated as a whole, with all its vnodes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport
from backends.observed.rows import JobRow, ReservationRow

SOON = 5.0  # seconds within which a planned start counts as now: the scheduler's clock need not be ours


class Donatable(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that both requests of the site and pilots on donated nodes may have."""

    name: str
    nodes: Collection[str]
    """Names of its vnodes, or its own."""
    processors: int
    memory: int | None
    """Bytes; None: not told."""
    away: bool
    """Whether it takes no work, or sleeps."""
    taken: bool = False
    """Whether it names jobs of others that hold something of it."""
    held: bool
    """Whether a job holds something of it, though none is named."""
    kept: bool = False
    """Whether the scheduler keeps it for a job that is not shown."""


def node_reports(
    now: float,
    machines: Sequence[Donatable],
    jobs: Sequence[JobRow],
    donated: Collection[str],
    reservations: Sequence[ReservationRow],
) -> list[NodeReport]:
    """Reports on all machines, for donation.

    A machine is idle where no job but a pilot on a donated node holds anything of it, and none is about to
    start there. One that is in use by hidden jobs is taken.

    Args:
        donated: ids of the jobs by which machines are donated.
        reservations: other than the one that we ourselves use.
    """
    look = _Look(now, machines)
    look.at_jobs(jobs, donated)
    look.at_reservations(reservations)
    return [look.report(machine) for machine in machines]


class _Look:
    def __init__(self, now: float, machines: Iterable[Donatable]) -> None:
        self._now = now
        self._machines = {node: machine.name for machine in machines for node in machine.nodes}
        self._taken: set[str] = set()
        self._occupied: set[str] = set()  # by pilots on donated nodes
        self._closed: set[str] = set()
        self._planned: dict[str, float] = {}

    def at_jobs(self, jobs: Iterable[JobRow], donated: Collection[str]) -> None:
        for job in jobs:
            there = self._of(job.nodes)
            if job.id in donated:
                self._occupied |= there
                self._taken |= there if job.leaving else set()
                continue
            self._taken |= there
            if job.waits and job.planned_start is not None:
                self._plan(job.plan, job.planned_start)

    def at_reservations(self, reservations: Iterable[ReservationRow]) -> None:
        for held in reservations:
            if held.start <= self._now < held.end:
                self._closed |= self._of(held.nodes)
            elif held.start > self._now:
                self._plan(held.nodes, held.start)

    def report(self, machine: Donatable) -> NodeReport:
        planned = self._planned.get(machine.name, self._now if machine.kept else math.inf)
        return NodeReport(
            name=machine.name,
            processors=machine.processors,
            memory=machine.memory,
            use=self._use(machine),
            planned=planned,
        )

    def _use(self, machine: Donatable) -> NodeUse:
        if machine.away or machine.name in self._closed:
            return NodeUse.AWAY
        starts = self._planned.get(machine.name, math.inf)
        unseen = machine.taken or (machine.held and machine.name not in self._occupied)
        if machine.name in self._taken or starts <= self._now + SOON or unseen:
            return NodeUse.TAKEN
        return NodeUse.IDLE

    def _of(self, nodes: Iterable[str]) -> set[str]:
        """The machines of nodes, or of vnodes; one that is not known stands for itself."""
        return {self._machines.get(node, node) for node in nodes}

    def _plan(self, nodes: Mapping[str, object], start: float) -> None:
        for name in self._of(nodes):
            self._planned[name] = min(start, self._planned.get(name, math.inf))
