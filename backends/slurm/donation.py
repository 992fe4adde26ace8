"""Donated nodes at Slurm: reports on them, and checks that pilots there make room for local jobs in time."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.reports import NodeReport
from adaptor.units import format_duration
from backends.base import SchedulerError
from backends.donation import donation_terms
from backends.findings import Finding, error, ok, warning
from backends.observed import donation as observed
from backends.observed.donation import Donatable
from backends.observed.rows import ReservationRow
from backends.slurm.fields import parse_limit
from backends.slurm.nodes import check_started, in_service, rows_of
from backends.slurm.queue import job_row
from backends.slurm.rows import NodeRow, Partition, QueueRow, find_partition

_ASLEEP = frozenset("~#$")
"""Powered off, powering up and under maintenance. Slurm itself would wake a node for a job; for a donation
that costs more than it yields."""


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


def node_reports(
    now: float,
    nodes: Sequence[NodeRow],
    jobs: Sequence[QueueRow],
    donated: Collection[str],
    reservations: Sequence[ReservationRow] = (),
) -> list[NodeReport]:
    """Reports on the nodes of `donatable`; a node that is in use by hidden jobs (`PrivateData=jobs`) is
    taken.

    A pilot that ends while other jobs wait most likely got the order to leave.
    """
    rows = [job_row(row) for row in jobs]
    somebody_waits = any(row.waits for row in rows if row.id not in donated)
    rows = [
        msgspec.structs.replace(row, leaving=True) if somebody_waits and row.state == "ending" else row
        for row in rows
    ]
    awaited = {name for row in rows if row.id in donated for name in row.plan}
    machines = [
        Donatable(
            name=row.node,
            nodes=(row.node,),
            processors=row.allocated + row.idle + row.other,
            memory=row.memory * 2**20,
            away=not in_service(row) or row.state == "maint" or bool(_ASLEEP.intersection(row.flags)),
            held=row.allocated > 0 or row.state == "completing",
            kept=(row.state == "planned" or "-" in row.flags) and row.node not in awaited,
        )
        for row in nodes
    ]
    return observed.node_reports(now, machines, rows, donated, reservations)


def check_donation(
    site: SiteConfig,
    rows: Collection[NodeRow],
    partitions: Mapping[str, Partition],
    settings: Mapping[str, str],
) -> Iterator[Finding]:
    """Check that jobs of the site's partition preempt those of the donation's, and in time.

    Agents are outside of Slurm's book-keeping: for their site only the nodes are checked.
    """
    if site.donation is None:
        return
    try:
        count = len(donatable(rows, site))
    except SchedulerError as problem:
        yield error(str(problem))
        return
    yield ok(f"donation: {count} nodes may be donated")
    if site.donation.mode == "preemptible":
        yield from _check_preemption(site, partitions, settings)


def _check_preemption(
    site: SiteConfig, partitions: Mapping[str, Partition], settings: Mapping[str, str]
) -> Iterator[Finding]:
    kind = settings.get("PreemptType", "preempt/none")
    terms = donation_terms(site)
    own, donated = (find_partition(partitions.values(), each.partition) for each in (site, terms))
    if kind == "preempt/none":
        yield error(
            "donation: Slurm preempts no job here (PreemptType): local jobs would wait for donated nodes"
        )
    elif kind == "preempt/partition_prio" and own is not None and donated is not None:
        yield _by_partition(own, donated)
        yield from _check_manner(donated)
    else:
        yield warning(
            f"donation: which jobs yield is decided by {kind}: see that those of {_named(terms)} do, with "
            "`sacctmgr show qos format=name,preempt,preemptmode,gracetime`"
        )
    exempt = parse_limit(settings.get("PreemptExemptTime", "0"))
    if 0 < exempt < math.inf:
        yield error(
            f"donation: no job makes room in its first {format_duration(exempt)} (PreemptExemptTime): local "
            "jobs would wait for donated nodes that long"
        )


def _by_partition(own: Partition, donated: Partition) -> Finding:
    if donated.preempt_mode == "OFF":
        return error(
            f"donation: jobs of partition {donated.name} are not preempted (PreemptMode=OFF): local jobs "
            "would wait for donated nodes; name a partition whose jobs are"
        )
    if donated.tier >= own.tier:
        return error(
            f"donation: jobs of partition {own.name} (PriorityTier={own.tier}) do not preempt those of "
            f"{donated.name} (PriorityTier={donated.tier}): local jobs would wait for donated nodes"
        )
    return ok(
        f"donation: jobs of partition {donated.name} make room for those of {own.name}, with "
        f"{format_duration(donated.grace)} to leave"
    )


def _check_manner(donated: Partition) -> Iterator[Finding]:
    if donated.preempt_mode.startswith(("SUSPEND", "GANG")):
        yield warning(
            f"donation: pilots in partition {donated.name} are stopped, not ended (PreemptMode="
            f"{donated.preempt_mode}): their memory is not free for local jobs; CANCEL would be better"
        )
    elif donated.preempt_mode != "OFF" and donated.grace < 1:
        yield warning(
            f"donation: pilots in partition {donated.name} are killed without notice (GraceTime=0): what "
            "their tasks did is lost without a word; a few seconds are enough"
        )


def _named(terms: SiteConfig) -> str:
    return f"QOS {terms.qos}" if terms.qos else f"partition {terms.partition or 'by default'}"
