"""Pilots in figures: what they held, and what of it became results."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from adaptor.api import PilotRecord
from adaptor.journal.database import select
from adaptor.journal.live import OFFLINE, Live
from adaptor.journal.pilot_rows import held_by_attempts
from adaptor.model import USEFUL


def pilots(
    db: sqlite3.Connection, where: str, arguments: Sequence[object], now: float, live: Live = OFFLINE
) -> list[PilotRecord]:
    """Pilots by an SQL condition on `pilot`, which never comes from a user; `now` ends those that run."""
    used = _used(db, where, arguments)

    def sums(row: dict[str, Any]) -> dict[str, Any]:
        came_to = used.get(row["id"], 0.0) + row["past_used"]
        wasted = max(0.0, _held(row, now) - came_to)
        return {"used": came_to, "wasted": wasted, "workers": 0, "note": ""}

    records = select(
        db,
        PilotRecord,
        f"pilot WHERE {where} ORDER BY id",
        arguments,
        named={"node": "donated_node"},
        also=("freed", "freed_at_sum", "past_used"),
        made=sums,
        of_made=("used", "wasted", "workers", "note"),
    )
    return [live.pilot(record) for record in records]


def _used(db: sqlite3.Connection, where: str, arguments: Sequence[object]) -> dict[int, float]:
    """Processor-seconds of the attempts that became results, by pilot."""
    chosen = f"attempt.outcome IN (?, ?) AND attempt.pilot IN (SELECT id FROM pilot WHERE {where})"  # noqa: S608
    used: dict[int, float] = {}
    for held in held_by_attempts(db, chosen, (*(outcome.value for outcome in USEFUL), *arguments)):
        used[held.pilot] = used.get(held.pilot, 0.0) + held.seconds
    return used


def _held(pilot: dict[str, Any], now: float) -> float:
    """Processor-seconds, without those of processors that were given back early."""
    if pilot["started"] is None:
        return 0.0
    end = pilot["ended"] if pilot["ended"] is not None else now
    given_back = pilot["freed"] * end - pilot["freed_at_sum"]
    return float(pilot["p"] * max(0.0, end - pilot["started"]) - given_back)
