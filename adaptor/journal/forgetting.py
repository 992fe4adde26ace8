"""Forgetting bags that have ended: their rows go a few at a time; their pilots and what those cost stay.

A bag is gone for every question as soon as its number stands in `forgotten`. Its tasks and attempts go in
slices, each a short transaction; a crash in between loses nothing, and the next daemon
goes on.
"""

from __future__ import annotations

import sqlite3
from itertools import takewhile

import msgspec

from adaptor.bag_spec import Bundle
from adaptor.budget.accounting.statements import Statements
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import spec_of
from adaptor.journal.credits import forget_budget
from adaptor.journal.decision_rows import delete_decisions
from adaptor.journal.forecast_rows import keep_judged
from adaptor.journal.kind_rows import forget_records
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import USEFUL

TASKS = 250  # tasks whose rows go in one transaction: some milliseconds
_DECISIONS = 500
_PAGES = 64  # free pages of the file that are given back at once
_LAST_DAY = 86_400.0  # seconds of decisions that stay where no bag is left


def ended_before(db: sqlite3.Connection, instant: float, limit: int) -> list[int]:
    """The oldest bags that ended before an instant (epoch seconds)."""
    rows = db.execute("SELECT id FROM bag WHERE ended < ? ORDER BY id LIMIT ?", (instant, limit))
    return [bag for (bag,) in rows]


def last_written(db: sqlite3.Connection) -> float | None:
    """Epoch seconds of the last submission of a bag or last kept decision; None: there was none."""
    (at,) = db.execute(
        "SELECT MAX(at) FROM (SELECT MAX(submitted) AS at FROM bag UNION ALL"
        " SELECT time FROM decision WHERE id = (SELECT MAX(id) FROM decision))"
    ).fetchone()
    return None if at is None else float(at)


def check_forgettable(db: sqlite3.Connection, bag: int, books: Statements) -> None:
    """Raises UsageError: the bag has not ended, or a pilot that it ran in or pays for has not."""
    row = db.execute("SELECT ended FROM bag WHERE id = ?", (bag,)).fetchone()
    open_attempt = "SELECT 1 FROM attempt WHERE bag = ? AND outcome IS NULL LIMIT 1"
    if row is None or row[0] is None or db.execute(open_attempt, (bag,)).fetchone():
        raise UsageError(f"bag {bag} has not ended: wait for it, or end it: adaptor cancel {bag}")
    paid = {each.pilot for each in books.open_pilots_of(bag)}
    ran = "SELECT 1 FROM attempt WHERE pilot = ? AND bag = ? LIMIT 1"
    for pilot in sorted({*(row.id for row in pilots_in_system(db)), *books.open_pilots}):
        if pilot in paid or db.execute(ran, (pilot, bag)).fetchone():
            raise UsageError(
                f"bag {bag} cannot be forgotten yet: pilot {pilot}, in which it ran or for which it pays, has"
                " not ended; try again when it has (adaptor status)"
            )


def forget_bag(db: sqlite3.Connection, bag: int, books: Statements, *, old: bool = False) -> None:
    """Take a bag that is forgettable away; the caller has begun a transaction, and compacts later.

    `old`: because of its age, and not because its user says so: what it has shown of its kinds stays.
    """
    processors = spec_of(db, bag).task.total_processors
    keep_judged(db, books, bag)
    db.execute("INSERT INTO forgotten (bag, cpus) VALUES (?, ?)", (bag, processors))
    for table, key in (
        ("forecast", "bag"),
        ("raw_forecast", "bag"),
        ("notice", "bag"),
        ("added", "bag"),
        ("bag", "id"),
    ):
        db.execute(f"DELETE FROM {table} WHERE {key} = ?", (bag,))  # noqa: S608
    if not old:
        forget_records(db, bag)
    forget_budget(db, bag)


class _Stages(msgspec.Struct, frozen=True):
    """The part of a bag's spec that says what it stages."""

    bundle: Bundle | None = None


_UNPACK = msgspec.msgpack.Decoder(_Stages).decode


def needed_bundles(db: sqlite3.Connection, since: float) -> set[str]:
    """The digests of what bags stage that may run tasks: those that have not ended, and, for a retry, those
    that ended after an instant (epoch seconds) with tasks that are not done."""
    rows = db.execute(
        "SELECT spec FROM bag WHERE ended IS NULL OR (ended > ? AND failed + cancelled > 0)", (since,)
    )
    found = (_UNPACK(spec).bundle for (spec,) in rows)
    return {bundle.digest for bundle in found if bundle is not None}


def forget_some(db: sqlite3.Connection, now: float) -> bool:
    """Remove some rows of forgotten bags and some old decisions, in one transaction; False: none are left."""
    return _forget_tasks(db) or _forget_decisions(db, now)


def _forget_tasks(db: sqlite3.Connection) -> bool:
    """Forget some tasks of a bag with their attempts; the sums of these stay with their pilots."""
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


def _forget_decisions(db: sqlite3.Connection, now: float) -> bool:
    """The oldest decisions, if they were made before all bags that are left.

    The newest one stays, so that its id never comes again.
    """
    (oldest,) = db.execute("SELECT MIN(submitted) FROM bag").fetchone()
    horizon = now - _LAST_DAY if oldest is None else oldest
    rows = db.execute(
        "SELECT id, time FROM decision WHERE id < (SELECT MAX(id) FROM decision) ORDER BY id LIMIT ?",
        (_DECISIONS,),
    )
    old = [id for id, _ in takewhile(lambda row: row[1] < horizon, rows)]
    if old:
        delete_decisions(db, old[0], old[-1])
    return bool(old)


def shrink(db: sqlite3.Connection) -> bool:
    """Give some free pages back to the file system, outside of a transaction; False: there are none."""
    if not db.execute("PRAGMA freelist_count").fetchone()[0]:
        return False
    before = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
    return bool(db.execute("PRAGMA page_count").fetchone()[0] < before)


def is_compact(db: sqlite3.Connection) -> bool:
    """True if no rows of forgotten bags are left."""
    return db.execute("SELECT 1 FROM forgotten LIMIT 1").fetchone() is None
