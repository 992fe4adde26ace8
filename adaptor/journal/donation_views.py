"""Donated nodes in figures: what their time was used for, how often and how fast they were reclaimed."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Sequence

import msgspec

from adaptor.api import DonationView
from adaptor.journal.pilot_rows import held_by_attempts
from adaptor.model import AttemptOutcome, PilotState

NOTHING_DONATED = DonationView(
    nodes=0, donations=0, held=0.0, used=0.0, lost=0.0, reclaims=0, latency=None, slowest=None
)
_LOST = (AttemptOutcome.PREEMPTED, AttemptOutcome.LOST)


def donation_of_site(db: sqlite3.Connection, site: str, now: float) -> DonationView | None:
    """All donated nodes that a site has used, those in use included; None: it never used one."""
    rows = db.execute(
        "SELECT id, state, reclaim_time, p * MAX(0, COALESCE(ended, ?) - started) FROM pilot"
        " WHERE site = ? AND donated_node <> ''",
        (now, site),
    ).fetchall()
    uses = [_Use(*row) for row in rows]
    if not uses:
        return None
    held = _attempts(db, "pilot.site = ?", (site,))
    return _view(uses, sum(use.held or 0.0 for use in uses), *held)


def donation_of_bag(db: sqlite3.Connection, bag: int) -> DonationView | None:
    """What the tasks of a bag held of donated nodes; None: none ever ran there."""
    rows = db.execute(
        "SELECT id, state, reclaim_time, 0 FROM pilot WHERE donated_node <> ''"
        " AND id IN (SELECT DISTINCT pilot FROM attempt WHERE bag = ?)",
        (bag,),
    ).fetchall()
    if not rows:
        return None
    used, lost = _attempts(db, "attempt.bag = ?", (bag,))
    return _view([_Use(*row) for row in rows], used + lost, used, lost)


class _Use(msgspec.Struct, frozen=True):
    """A pilot that uses a donated node, or has."""

    id: int
    state: str
    reclaim_time: float | None
    """Seconds; None: its node was not reclaimed, or it is not known."""
    held: float | None
    """Processor-seconds."""


def _view(uses: Sequence[_Use], held: float, used: float, lost: float) -> DonationView:
    reclaimed = [use for use in uses if use.state == PilotState.PREEMPTED.value]
    times = [use.reclaim_time for use in reclaimed if use.reclaim_time is not None]
    return DonationView(
        nodes=sum(use.state == PilotState.RUNNING.value for use in uses),
        donations=len(uses),
        held=held,
        used=used,
        lost=lost,
        reclaims=len(reclaimed),
        latency=statistics.median(times) if times else None,
        slowest=max(times, default=None),
    )


def _attempts(db: sqlite3.Connection, where: str, arguments: tuple[object, ...]) -> tuple[float, float]:
    """Processor-seconds of attempts on donated nodes: those that became results, and those that were lost."""
    used = lost = 0.0
    for held in held_by_attempts(db, f"pilot.donated_node <> '' AND {where}", arguments):
        if held.outcome.useful:
            used += held.seconds
        elif held.outcome in _LOST:
            lost += held.seconds
    return used, lost
