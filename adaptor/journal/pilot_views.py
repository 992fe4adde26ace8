"""Pilots in figures: what they held, and what of it became results."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from adaptor.api import PilotRecord
from adaptor.journal.live import OFFLINE, Live
from adaptor.journal.pilot_rows import held_by_attempts
from adaptor.model import USEFUL

_PILOT_COLUMNS = (
    "id, site, job, state, p, tr, donated_node, submitted, predicted_start, started, ended, reclaim_time,"
    " reason, end_reason, partition, freed, freed_at_sum, past_used"
)


def pilots(
    db: sqlite3.Connection, where: str, arguments: Sequence[object], now: float, live: Live = OFFLINE
) -> list[PilotRecord]:
    """Pilots by an SQL condition on `pilot`, which never comes from a user; `now` ends those that run."""
    rows = db.execute(f"SELECT {_PILOT_COLUMNS} FROM pilot WHERE {where} ORDER BY id", arguments).fetchall()  # noqa: S608
    used = _used(db, where, arguments)
    return [live.pilot(_pilot_record(row, used.get(row[0], 0.0), now)) for row in rows]


def _used(db: sqlite3.Connection, where: str, arguments: Sequence[object]) -> dict[int, float]:
    """Processor-seconds of the attempts that became results, by pilot."""
    chosen = f"attempt.outcome IN (?, ?) AND attempt.pilot IN (SELECT id FROM pilot WHERE {where})"  # noqa: S608
    used: dict[int, float] = {}
    for held in held_by_attempts(db, chosen, (*(outcome.value for outcome in USEFUL), *arguments)):
        used[held.pilot] = used.get(held.pilot, 0.0) + held.seconds
    return used


def _pilot_record(row: tuple[object, ...], used: float, now: float) -> PilotRecord:
    pilot = _PilotRow(*row)  # type: ignore[arg-type]
    fields = msgspec.structs.asdict(pilot)
    del fields["freed"], fields["freed_at_sum"], fields["past_used"]
    used += pilot.past_used
    wasted = max(0.0, _held(pilot, now) - used)
    return PilotRecord(**fields, used=used, wasted=wasted, workers=0, note="")


def _held(pilot: _PilotRow, now: float) -> float:
    """Processor-seconds, without those of processors that were given back early."""
    if pilot.started is None:
        return 0.0
    end = pilot.ended if pilot.ended is not None else now
    return pilot.p * max(0.0, end - pilot.started) - (pilot.freed * end - pilot.freed_at_sum)


class _PilotRow(msgspec.Struct):
    id: int
    site: str
    job: str | None
    state: str
    p: int
    tr: int
    node: str
    submitted: float
    predicted_start: float | None
    started: float | None
    ended: float | None
    reclaim_time: float | None
    reason: str
    end_reason: str
    partition: str
    freed: int
    freed_at_sum: float
    past_used: float
