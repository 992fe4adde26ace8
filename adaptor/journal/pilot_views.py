"""Pilots as the journal tells them: what they held, and what of it was of use."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.views import PilotRecord

_PILOT_COLUMNS = (
    "id, site, job, state, p, tr, donated_node, submitted, predicted_start, started, ended, reclaim_time,"
    " reason, end_reason, freed, freed_at_sum"
)


def pilots(db: sqlite3.Connection, where: str, arguments: Iterable[object]) -> list[PilotRecord]:
    """Pilots by an SQL condition of this module's own making."""
    rows = db.execute(f"SELECT {_PILOT_COLUMNS} FROM pilot {where} ORDER BY id", tuple(arguments)).fetchall()  # noqa: S608
    used = _used(db, [row[0] for row in rows])
    now = time.time()
    return [_pilot_record(row, used.get(row[0], 0.0), now) for row in rows]


def _used(db: sqlite3.Connection, ids: list[int]) -> dict[int, float]:
    """Processor-seconds of the attempts that became results, by pilot."""
    rows = db.execute(
        "SELECT attempt.pilot, bag.spec, SUM(attempt.wall) FROM attempt JOIN bag ON bag.id = attempt.bag"  # noqa: S608
        f" WHERE attempt.outcome = 'done' AND attempt.pilot IN ({','.join('?' * len(ids))})"
        " GROUP BY attempt.pilot, attempt.bag",
        ids,
    )
    used: dict[int, float] = {}
    for pilot, spec, wall in rows:
        cpus = msgspec.msgpack.decode(spec, type=BagSpec).cpus
        used[pilot] = used.get(pilot, 0.0) + wall * cpus
    return used


def _pilot_record(row: tuple[object, ...], used: float, now: float) -> PilotRecord:
    pilot = _PilotRow(*row)  # type: ignore[arg-type]
    fields = msgspec.structs.asdict(pilot)
    del fields["freed"], fields["freed_at_sum"]
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
    yielded: float | None
    reason: str
    end_reason: str
    freed: int
    freed_at_sum: float
