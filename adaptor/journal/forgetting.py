"""Forgetting bags that have ended: their rows go a few at a time, what they have cost and taught stays.

A bag is gone for every question as soon as its number stands in `forgotten`. Its tasks and attempts go in
slices, each a short transaction, so that nobody waits; a crash in between loses nothing, and the next daemon
goes on. A pilot goes when every bag that paid for it or ran in it is gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.entries import Part
from adaptor.budget.accounting.past import settled_pilot
from adaptor.budget.accounting.statements import Statements
from adaptor.errors import UsageError
from adaptor.journal.credit_entries import entries_of_pilot, forget_budget, keep_past
from adaptor.journal.forecast_rows import keep_judged
from adaptor.journal.kind_rows import forget_records
from adaptor.journal.pilot_rows import WAITS
from adaptor.model import IN_SYSTEM, USEFUL, PilotState

TASKS = 250
"""Tasks whose rows go in one transaction: some milliseconds."""
_WINDOW = 100
"""Pilots that are looked at in one transaction."""
_DECISIONS = 500
_PAGES = 64
"""Free pages of the file that are given back at once."""
_LAST_DAY = 86_400.0
"""Seconds of decisions that stay where no bag is left."""


class ForgottenPilot(msgspec.Struct, frozen=True):
    """A pilot whose rows are gone, and who had paid for it."""

    id: int
    parts: tuple[Part, ...]


def ended_before(db: sqlite3.Connection, instant: float, limit: int) -> list[int]:
    """The oldest bags that ended before an instant (epoch seconds)."""
    rows = db.execute("SELECT id FROM bag WHERE ended < ? ORDER BY id LIMIT ?", (instant, limit))
    return [bag for (bag,) in rows]


def check_forgettable(db: sqlite3.Connection, bag: int, books: Statements) -> None:
    """Raises UsageError: the bag has not ended, or a pilot that it ran in or pays for has not."""
    row = db.execute("SELECT ended FROM bag WHERE id = ?", (bag,)).fetchone()
    open_attempt = "SELECT 1 FROM attempt WHERE bag = ? AND outcome IS NULL LIMIT 1"
    if row is None or row[0] is None or db.execute(open_attempt, (bag,)).fetchone():
        raise UsageError(f"bag {bag} has not ended: wait for it, or end it: adaptor cancel {bag}")
    pilot = next(_open_pilots(db, bag, books), None)
    if pilot is not None:
        raise UsageError(
            f"bag {bag} cannot be forgotten yet: pilot {pilot}, in which it ran or for which it pays, has not"
            f" ended; try again when it has (adaptor status)"
        )


def _open_pilots(db: sqlite3.Connection, bag: int, books: Statements) -> Iterator[int]:
    """Pilots that are in the system or not settled, and that concern a bag."""
    paid = {each.pilot for each in books.open_pilots_of(bag)}
    marks = ",".join("?" * len(IN_SYSTEM))
    rows = db.execute(
        f"SELECT id FROM pilot WHERE state IN ({marks})",  # noqa: S608
        [state.value for state in IN_SYSTEM],
    )
    for pilot in sorted({*(id for (id,) in rows), *books.open_pilots}):
        ran = "SELECT 1 FROM attempt WHERE pilot = ? AND bag = ? LIMIT 1"
        if pilot in paid or db.execute(ran, (pilot, bag)).fetchone():
            yield pilot


def forget_bag(db: sqlite3.Connection, bag: int, books: Statements, *, old: bool = False) -> None:
    """Take a bag that is forgettable away; the caller has begun a transaction, and compacts later.

    `old`: because of its age, and not because its user says so: what it has shown of its kinds stays.
    """
    (packed,) = db.execute("SELECT spec FROM bag WHERE id = ?", (bag,)).fetchone()
    processors = msgspec.msgpack.decode(packed, type=BagSpec).task.total_processors
    keep_judged(db, books, bag)
    db.execute("INSERT INTO forgotten (bag, cpus) VALUES (?, ?)", (bag, processors))
    db.execute("DELETE FROM forecast WHERE bag = ?", (bag,))
    db.execute("DELETE FROM notice WHERE bag = ?", (bag,))
    db.execute("DELETE FROM appended WHERE bag = ?", (bag,))
    db.execute("DELETE FROM bag WHERE id = ?", (bag,))
    if not old:
        forget_records(db, bag)
    forget_budget(db, bag)


def forget_tasks(db: sqlite3.Connection) -> bool:
    """Remove some tasks of a forgotten bag, with their attempts; False: there are none."""
    row = db.execute("SELECT bag, cpus FROM forgotten ORDER BY bag LIMIT 1").fetchone()
    if row is None:
        return False
    bag, processors = row
    tasks = db.execute(
        "SELECT number FROM task WHERE bag = ? ORDER BY number LIMIT ?", (bag, TASKS)
    ).fetchall()
    if not tasks:
        db.execute("DELETE FROM forgotten WHERE bag = ?", (bag,))
        return True
    some = (bag, tasks[0][0], tasks[-1][0])
    used = db.execute(
        "SELECT SUM(wall * COALESCE(processors, ?)), pilot FROM attempt"
        " WHERE bag = ? AND task BETWEEN ? AND ? AND outcome IN (?, ?) AND started IS NOT NULL"
        " GROUP BY pilot",
        (processors, *some, *(outcome.value for outcome in USEFUL)),
    ).fetchall()
    db.executemany(
        "UPDATE pilot SET past_used = past_used + ? WHERE id = ?",
        [(held or 0.0, pilot) for held, pilot in used],
    )
    db.execute("DELETE FROM attempt WHERE bag = ? AND task BETWEEN ? AND ?", some)
    db.execute("DELETE FROM task WHERE bag = ? AND number BETWEEN ? AND ?", some)
    return True


def forget_pilots(db: sqlite3.Connection, after: int) -> tuple[int | None, list[ForgottenPilot]]:
    """Remove those of the next pilots after this id of which no bag is left.

    Returns the id to go on after, or None, and the pilots.
    """
    marks = ",".join("?" * len(IN_SYSTEM))
    found = db.execute(
        f"SELECT id, bag, submitted, state IN ({marks}) FROM pilot"  # noqa: S608
        " WHERE id > ? ORDER BY id LIMIT ?",
        (*(state.value for state in IN_SYSTEM), after, _WINDOW),
    ).fetchall()
    gone: list[ForgottenPilot] = []
    horizon = _oldest_bag(db)
    for pilot, owner, submitted, in_system in found:
        if in_system or db.execute("SELECT 1 FROM attempt WHERE pilot = ? LIMIT 1", (pilot,)).fetchone():
            continue
        entries = entries_of_pilot(db, pilot)
        known = settled_pilot(entries)
        if known is None and (entries or (horizon is not None and submitted >= horizon)):
            continue  # not settled, or of a format without entries and as young as some bag
        parts = known.parts if known is not None else ()
        payers = {part.bag for part in parts} | ({owner} if owner is not None else set())
        if _any_left(db, payers):
            continue
        if known is not None:
            keep_past(db, pilot, known.past)
        _forget_pilot(db, pilot)
        gone.append(ForgottenPilot(pilot, parts))
    return (found[-1][0] if len(found) == _WINDOW else None), gone


def forget_decisions(db: sqlite3.Connection, after: int, now: float) -> int | None:
    """Remove those of the next decisions after this id that are older than all bags and about no pilot.

    Returns the id to go on after, or None. The newest one stays, so that its id never comes again.
    """
    oldest = _oldest_bag(db)
    horizon = now - _LAST_DAY if oldest is None else oldest
    rows = db.execute(
        "SELECT id, time, pilot IS NULL OR NOT EXISTS (SELECT 1 FROM pilot WHERE pilot.id = decision.pilot)"
        " FROM decision WHERE id > ? AND id < (SELECT MAX(id) FROM decision) ORDER BY id LIMIT ?",
        (after, _DECISIONS),
    ).fetchall()
    old = [(id,) for id, time, alone in rows if alone and time < horizon]
    db.executemany("DELETE FROM decision WHERE id = ?", old)
    more = len(rows) == _DECISIONS and rows[-1][1] < horizon
    return rows[-1][0] if more else None


def shrink(db: sqlite3.Connection) -> bool:
    """Give some free pages back to the file system, outside of a transaction; False: there are none."""
    if not db.execute("PRAGMA freelist_count").fetchone()[0]:
        return False
    before = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
    return bool(db.execute("PRAGMA page_count").fetchone()[0] < before)


def is_compact(db: sqlite3.Connection) -> bool:
    """Whether no rows of forgotten bags are left."""
    return db.execute("SELECT 1 FROM forgotten LIMIT 1").fetchone() is None


def _oldest_bag(db: sqlite3.Connection) -> float | None:
    """When the oldest bag that is left was submitted; None: none is left."""
    found: float | None = db.execute("SELECT MIN(submitted) FROM bag").fetchone()[0]
    return found


def _any_left(db: sqlite3.Connection, bags: Iterable[int]) -> bool:
    return any(db.execute("SELECT 1 FROM bag WHERE id = ?", (bag,)).fetchone() for bag in bags)


def _forget_pilot(db: sqlite3.Connection, pilot: int) -> None:
    """Remove a pilot and what was told of it; its wait stays as long as it would be learned from."""
    db.execute(
        "INSERT INTO wait"
        " SELECT id, site, p, predicted_start, started, ended, submitted, tr FROM pilot WHERE id = ?"
        " AND predicted_start IS NOT NULL AND state <> ? AND (started IS NOT NULL OR ended IS NOT NULL)",
        (pilot, PilotState.REFUSED.value),
    )
    db.execute(
        "DELETE FROM wait WHERE site = (SELECT site FROM pilot WHERE id = ?1) AND pilot <="
        " (SELECT pilot FROM wait WHERE site = (SELECT site FROM pilot WHERE id = ?1)"
        " ORDER BY pilot DESC LIMIT 1 OFFSET ?2)",
        (pilot, WAITS),
    )
    db.execute("DELETE FROM decision WHERE pilot = ?", (pilot,))
    db.execute("DELETE FROM pilot WHERE id = ?", (pilot,))
