"""Write the changes of the broker as rows of the journal."""

from __future__ import annotations

import sqlite3
from itertools import groupby

import msgspec

from adaptor.journal.bag_rows import write_memory, write_needs
from adaptor.model import UserChange
from adaptor.protocol.messages import Ending, Result
from adaptor.scheduling.changes import (
    AttemptChange,
    AttemptEnd,
    AttemptRevived,
    AttemptStart,
    AttemptSuspected,
    Changes,
    TaskChange,
)


def write_changes(db: sqlite3.Connection, changes: Changes, now: float) -> None:
    """Write one step of the broker; the caller has begun a transaction."""
    for kind, together in groupby(changes.attempts, key=type):
        db.executemany(_ATTEMPT_STATEMENTS[kind], map(_attempt_row, together))
    write_memory(db, ((each.memory, each.bag, each.task) for each in changes.raised))
    for each in changes.needs:
        write_needs(db, each.bag, each.tasks, each.needs)
    db.executemany(_TASK_UPDATE, map(_task_row, changes.tasks))
    for bag, tally in changes.tallies.items():
        db.execute(_TALLY_UPDATE, {**msgspec.structs.asdict(tally), "bag": bag, "now": now})
    for bag, guard in changes.guards.items():
        db.execute("UPDATE bag SET guard = ? WHERE id = ?", (msgspec.msgpack.encode(guard), bag))
    for bag, spec in changes.specs.items():
        db.execute("UPDATE bag SET spec = ? WHERE id = ?", (msgspec.msgpack.encode(spec), bag))
    for bag, change in changes.by_user.items():
        note_user_change(db, bag, change, now)


def note_user_change(db: sqlite3.Connection, bag: int, change: UserChange, now: float) -> None:
    """Write down what the user changed of a bag; the caller has begun a transaction.

    What is changed of an ended bag, such as its budget, changes neither its cost nor its end.
    """
    db.execute(
        "UPDATE bag SET user_change = ?, user_changed = ? WHERE id = ? AND (ended IS NULL OR ended >= ?)",
        (change, now, bag, now),
    )


_TASK_UPDATE = (
    "UPDATE task SET state = ?, attempts = ?, charged = ?, result = COALESCE(?, result), error = ?,"
    " event = COALESCE(? + number, event) WHERE bag = ? AND number BETWEEN ? AND ?"
)

_TALLY_UPDATE = (
    "UPDATE bag SET waiting = :waiting, leased = :leased, done = :done, failed = :failed,"
    " cancelled = :cancelled, retried = :retried, runtime = :runtime, first_done = :first_done,"
    " open = :open, blocked = :blocked, events = :events,"
    " ended = CASE WHEN :waiting + :leased + :blocked + :open = 0 THEN COALESCE(ended, :now) END"
    " WHERE id = :bag"
)


def _task_row(change: TaskChange) -> tuple[object, ...]:
    return (
        change.state.value,
        change.attempts,
        change.charged,
        change.result,
        change.error,
        None if change.event is None else change.event - change.task,
        change.bag,
        change.tasks[0],
        change.tasks[-1],
    )


_ATTEMPT_STATEMENTS: dict[type, str] = {
    AttemptStart: "INSERT INTO attempt (pilot, node, worker, leased, processors, bag, task, number)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    AttemptRevived: "UPDATE attempt SET outcome = NULL, ended = NULL, suspect = 0"
    " WHERE bag = ? AND task = ? AND number = ?",
    AttemptEnd: "UPDATE attempt SET outcome = ?, started = ?, ended = ?, wall = ?, cpu = ?, peak_memory = ?,"
    " exit_code = ?, signal = ?, error = ?, suspect = ?, peak_gpu_memory = ?, answer = ?"
    " WHERE bag = ? AND task = ? AND number = ?",
    AttemptSuspected: "UPDATE attempt SET suspect = ? WHERE bag = ? AND task = ? AND number = ?",
}


def _attempt_row(attempt: AttemptChange) -> tuple[object, ...]:
    key = attempt.key
    at = (key.bag, key.task, key.attempt)
    match attempt:
        case AttemptStart():
            return (attempt.pilot, attempt.node, attempt.worker, attempt.at, attempt.processors, *at)
        case AttemptRevived():
            return at
        case AttemptSuspected():
            return (attempt.suspect, *at)
        case AttemptEnd():
            told = attempt.result or Result(key, Ending.RETURNED)
            ran = attempt.result is not None and attempt.started is not None
            return (
                *(attempt.outcome.value, attempt.started, attempt.at, attempt.wall),
                *(told.cpu if ran else None, told.peak_memory or None),
                *(told.exit_code, told.signal, told.error, attempt.suspect),
                *(told.peak_gpu_memory or None, told.answer or None),
                *at,
            )
