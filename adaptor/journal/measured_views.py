"""What the tasks of a bag were seen to need."""

from __future__ import annotations

import sqlite3

import msgspec

from adaptor.api import MeasuredView, Totals
from adaptor.bag_spec import BagSpec
from adaptor.errors import UsageError
from adaptor.model import AttemptOutcome


def measured(db: sqlite3.Connection, bag: int, totals: Totals) -> MeasuredView:
    """Of the attempts that became results, but for those of tasks with needs of their own.

    Raises UsageError: there is no such bag.
    """
    row = db.execute("SELECT spec FROM bag WHERE id = ?", (bag,)).fetchone()
    if row is None:
        raise UsageError(f"there is no bag {bag}")
    spec = msgspec.msgpack.decode(row[0], type=BagSpec)
    done, wall, longest, cpu, memory = db.execute(
        "SELECT COUNT(*), TOTAL(wall), MAX(wall), TOTAL(cpu), MAX(peak_memory) FROM attempt JOIN task"
        " ON task.bag = attempt.bag AND task.number = attempt.task"
        " WHERE attempt.bag = ? AND outcome = ? AND wall IS NOT NULL AND needs IS NULL AND memory IS NULL",
        (bag, AttemptOutcome.DONE.value),
    ).fetchone()
    mixed = db.execute("SELECT 1 FROM task WHERE bag = ? AND needs IS NOT NULL LIMIT 1", (bag,)).fetchone()
    first = None if mixed else _first_request(db, bag)
    return MeasuredView(
        task=spec.task,
        sites=list(spec.sites),
        done=done,
        wall=wall,
        longest=longest or 0.0,
        cpu=cpu,
        memory=memory or 0,
        first_tr=first,
        paid=totals.paid,
        used=totals.used,
    )


def _first_request(db: sqlite3.Connection, bag: int) -> float | None:
    """The time (seconds) of the first formal request that ran any of its tasks; None: there was none."""
    first = db.execute(
        "SELECT tr FROM pilot WHERE donated_node = '' AND id IN"
        " (SELECT DISTINCT pilot FROM attempt WHERE bag = ?) ORDER BY id LIMIT 1",
        (bag,),
    ).fetchone()
    return float(first[0]) if first else None
