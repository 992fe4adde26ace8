"""The machines of PBS that may be donated, and what others do with them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from adaptor.reports import NodeReport
from backends.base import SchedulerError
from backends.observed import donation as observed
from backends.observed.donation import Donatable
from backends.observed.rows import ReservationRow
from backends.pbs.fields import number_of
from backends.pbs.reading import PbsTerms
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue
from backends.pbs.state.nodes import find_queue, memory_of, used_by
from backends.pbs.state.queue import job_row


def donatable(terms: PbsTerms, yielding: str | None) -> list[PbsNode]:
    """The (v)nodes of machines that both requests of the site and pilots on donated nodes may have wholly.

    `yielding`: the queue of pilots on donated nodes, where it is not the site's own.

    Raises SchedulerError: there is no such queue, it takes or starts no jobs, or none on the site's nodes.
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


def _used_wholly(queue: PbsQueue, terms: PbsTerms) -> list[PbsNode]:
    used = used_by(queue, terms.nodes, terms.queues, terms.reservations)
    sizes: dict[str, int] = defaultdict(int)
    for node in terms.nodes:
        sizes[node.host] += node.processors
    for node in used:
        sizes[node.host] -= node.processors
    return [node for node in used if sizes[node.host] == 0]


def node_reports(
    now: float,
    nodes: Sequence[PbsNode],
    jobs: Sequence[PbsJob],
    donated: Collection[str],
    reservations: Sequence[ReservationRow] = (),
) -> list[NodeReport]:
    """Reports on the machines of `donatable`; those without processors are left out."""
    numbers = {number_of(id) for id in donated}
    vnodes: dict[str, list[PbsNode]] = defaultdict(list)
    for node in nodes:
        vnodes[node.host].append(node)
    machines = [
        Donatable(
            name=host,
            nodes=[node.name for node in there],
            processors=sum(node.processors for node in there),
            memory=memory_of(there),
            away=not all(node.in_service for node in there),
            taken=any(number_of(id) not in numbers for node in there for id in node.jobs),
            held=any(node.assigned for node in there),
        )
        for host, there in vnodes.items()
    ]
    rows = [job_row(job, now) for job in jobs]
    pilots = {row.id for row in rows if number_of(row.id) in numbers}
    found = [machine for machine in machines if machine.processors]
    return observed.node_reports(now, found, rows, pilots, reservations)
