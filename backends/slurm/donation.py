"""The nodes of Slurm that may be donated, and what others do with them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.reports import NodeReport
from backends.base import SchedulerError
from backends.observed import donation as observed
from backends.observed.donation import Donatable
from backends.observed.rows import ReservationRow
from backends.slurm.nodes import check_started, in_service, rows_of
from backends.slurm.queue import job_row
from backends.slurm.rows import NodeRow, QueueRow

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
    """Of the nodes of `donatable`; a node that is in use by hidden jobs (`PrivateData=jobs`) is taken.

    A pilot that ends while somebody waits was most likely told to leave.
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
