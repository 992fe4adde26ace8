"""Lent time as a user is shown it: what of it was of use, how often and how fast it was given back."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Sequence

import msgspec

from adaptor.journal.attempt_sums import processor_seconds
from adaptor.model import AttemptOutcome, PilotState
from adaptor.views import LendingView

NOTHING_LENT = LendingView(
    nodes=0, leases=0, lent=0.0, used=0.0, lost=0.0, reclaims=0, latency=None, slowest=None
)
_LOST = (AttemptOutcome.PREEMPTED, AttemptOutcome.LOST)


def lending_of_site(db: sqlite3.Connection, site: str, now: float) -> LendingView | None:
    """All leases of a site, those that still run included; None: there never was one."""
    rows = db.execute(
        "SELECT id, state, reclaim_time, p * MAX(0, COALESCE(ended, ?) - started) FROM pilot"
        " WHERE site = ? AND donated_node <> ''",
        (now, site),
    ).fetchall()
    leases = [_Lease(*row) for row in rows]
    if not leases:
        return None
    held = _attempts(db, "pilot.site = ?", (site,))
    return _view(leases, sum(lease.held or 0.0 for lease in leases), *held)


def lending_of_bag(db: sqlite3.Connection, bag: int) -> LendingView | None:
    """What its tasks held of lent nodes; None: none ever ran there."""
    rows = db.execute(
        "SELECT id, state, reclaim_time, 0 FROM pilot WHERE donated_node <> ''"
        " AND id IN (SELECT DISTINCT pilot FROM attempt WHERE bag = ?)",
        (bag,),
    ).fetchall()
    if not rows:
        return None
    used, lost = _attempts(db, "attempt.bag = ?", (bag,))
    return _view([_Lease(*row) for row in rows], used + lost, used, lost)


class _Lease(msgspec.Struct, frozen=True):
    id: int
    state: str
    yielded: float | None
    held: float | None
    """Processor-seconds."""


def _view(leases: Sequence[_Lease], lent: float, used: float, lost: float) -> LendingView:
    reclaimed = [lease for lease in leases if lease.state == PilotState.PREEMPTED.value]
    times = [lease.yielded for lease in reclaimed if lease.yielded is not None]
    return LendingView(
        nodes=sum(lease.state == PilotState.RUNNING.value for lease in leases),
        leases=len(leases),
        lent=lent,
        used=used,
        lost=lost,
        reclaims=len(reclaimed),
        latency=statistics.median(times) if times else None,
        slowest=max(times, default=None),
    )


def _attempts(db: sqlite3.Connection, where: str, arguments: tuple[object, ...]) -> tuple[float, float]:
    """Processor-seconds of attempts on lent nodes that became results, and of those that were aborted."""
    used = lost = 0.0
    for _, outcome, held in processor_seconds(db, f"pilot.donated_node <> '' AND {where}", arguments):
        if outcome == AttemptOutcome.DONE.value:
            used += held
        elif AttemptOutcome(outcome) in _LOST:
            lost += held
    return used, lost
