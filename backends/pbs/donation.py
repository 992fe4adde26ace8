"""What others do with the machines of a site, for donation of idle ones (De Rose et al. 2008, §3). Pure.

A machine is donated as a whole, with all its vnodes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport
from backends.base import SchedulerError
from backends.donation import SOON
from backends.pbs.fields import number_of
from backends.pbs.reasons import is_considered
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsReservation
from backends.pbs.state.nodes import find_queue, used_by
from backends.pbs.state.queue import fresh_plan
from backends.pbs.terms import Terms

_HOLDING = frozenset("RESU")
"""States of jobs whose place is not free for others; a suspended one (S, U) will want it again."""


class NodesSeen(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    nodes: Sequence[PbsNode]
    """Those of `donatable`."""
    jobs: Sequence[PbsJob]
    donated: Collection[str]
    """Ids of the jobs by which machines are donated."""
    reservations: Sequence[PbsReservation] = ()
    """Other than the one that we ourselves use."""


def donatable(terms: Terms, yielding: str | None) -> list[PbsNode]:
    """The (v)nodes of machines that both requests of the site and pilots on donated nodes may have wholly.

    Args:
        yielding: the queue of pilots on donated nodes, where it is not the site's own.

    Raises:
        SchedulerError: there is no such queue, it takes or starts no jobs, or none on the site's nodes.
    """
    own = _used_wholly(terms.site.queue, terms)
    if yielding is None or yielding == terms.site.queue.name:
        return own
    try:
        queue = find_queue(terms.queues, yielding)
    except SchedulerError as error:
        raise SchedulerError(f"donation.partition: {error}") from error
    if not (queue.enabled and queue.started):
        problem = "stopped: it starts no jobs" if queue.enabled else "disabled: it takes no jobs"
        raise SchedulerError(f"donation.partition: queue {yielding} is {problem} at the moment")
    hosts = {node.host for node in _used_wholly(queue, terms)}
    shared = [node for node in own if node.host in hosts]
    if not shared:
        raise SchedulerError(
            f"donation.partition: no node of queue {terms.site.queue.name} is used by queue {yielding}: "
            "name one whose jobs run on the same nodes"
        )
    return shared


def _used_wholly(queue: PbsQueue, terms: Terms) -> list[PbsNode]:
    used = used_by(queue, terms.nodes, terms.queues, terms.reservations)
    sizes: dict[str, int] = defaultdict(int)
    for node in terms.nodes:
        sizes[node.host] += node.processors
    for node in used:
        sizes[node.host] -= node.processors
    return [node for node in used if sizes[node.host] == 0]


def node_reports(seen: NodesSeen) -> list[NodeReport]:
    """What a donation needs to know of each machine; those without processors are left out.

    A machine is idle where no job but a pilot on a donated node holds anything of it, and none is about to
    start there.
    """
    machines: dict[str, list[PbsNode]] = {}
    for node in seen.nodes:
        machines.setdefault(node.host, []).append(node)
    look = _Look(seen)
    reports = (look.report(host, nodes) for host, nodes in machines.items())
    return [report for report in reports if report.processors]


class _Look:
    def __init__(self, seen: NodesSeen) -> None:
        self._now = seen.now
        self._donated = {number_of(id) for id in seen.donated}
        self._hosts = {node.name: node.host for node in seen.nodes}
        local = [job for job in seen.jobs if number_of(job.id) not in self._donated]
        self._taken = self._held_by(job for job in local if job.state in _HOLDING)
        self._occupied = self._held_by(job for job in seen.jobs if number_of(job.id) in self._donated)
        self._closed: set[str] = set()
        self._planned: dict[str, float] = {}
        for job in local:
            start = fresh_plan(job, seen.now) if is_considered(job) else None
            if start is not None:
                self._plan(job.planned_nodes, start)
        for held in seen.reservations:
            if held.start <= seen.now < held.end:
                self._closed |= self._machines(held.nodes)
            elif held.start > seen.now:
                self._plan(held.nodes, held.start)

    def report(self, host: str, nodes: Sequence[PbsNode]) -> NodeReport:
        memory = [node.memory for node in nodes if node.memory is not None]
        return NodeReport(
            name=host,
            processors=sum(node.processors for node in nodes),
            memory=sum(memory) if memory else None,
            use=self._use(host, nodes),
            planned=self._planned.get(host, math.inf),
        )

    def _use(self, host: str, nodes: Sequence[PbsNode]) -> NodeUse:
        if host in self._closed or not all(node.in_service for node in nodes):
            return NodeUse.AWAY
        starts = self._planned.get(host, math.inf)
        if host in self._taken or starts <= self._now + SOON or self._is_held(host, nodes):
            return NodeUse.TAKEN
        return NodeUse.IDLE

    def _is_held(self, host: str, nodes: Sequence[PbsNode]) -> bool:
        """By jobs that the nodes name, or that nobody shows."""
        if any(number_of(id) not in self._donated for node in nodes for id in node.jobs):
            return True
        return host not in self._occupied and any(node.assigned for node in nodes)

    def _held_by(self, jobs: Iterable[PbsJob]) -> set[str]:
        return {host for job in jobs for host in self._machines((*job.nodes, *job.hosts))}

    def _machines(self, names: Iterable[str]) -> set[str]:
        """The machines of nodes, or of vnodes; one that is not known stands for itself."""
        return {self._hosts.get(name, name) for name in names}

    def _plan(self, names: Iterable[str], start: float) -> None:
        for host in self._machines(names):
            self._planned[host] = min(start, self._planned.get(host, math.inf))
