"""The entries of the ledger in the journal, and what the journal knows of a pilot that is to be charged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.entries import Budgeted, Entry
from adaptor.journal.attempt_sums import processor_seconds
from adaptor.journal.database import guarded
from adaptor.journal.journal import Journal
from adaptor.model import IN_SYSTEM, AttemptOutcome, PilotState

_pack = msgspec.msgpack.Encoder().encode
_unpack: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)

_TOLD = (AttemptOutcome.DONE, AttemptOutcome.FAILED, AttemptOutcome.SUPERSEDED, AttemptOutcome.WALLTIME)
"""Ends of attempts whose time is the worker's own word."""


class Ended(msgspec.Struct, frozen=True):
    """A pilot that is not in the system any more."""

    started: float | None
    """Epoch seconds; None: it never ran."""
    ended: float


def write_entry(db: sqlite3.Connection, entry: Entry) -> None:
    """To be called in a transaction of the journal."""
    db.execute("INSERT INTO credit (entry) VALUES (?)", (_pack(entry),))


def read_entries(journal: Journal) -> list[Entry]:
    """In the order in which they were written. Raises JournalError."""
    with guarded(journal.path):
        return entries(journal.connection)


def entries(db: sqlite3.Connection) -> list[Entry]:
    return [_unpack.decode(packed) for (packed,) in db.execute("SELECT entry FROM credit ORDER BY id")]


def budgets_of_bags(written: Iterable[Entry]) -> dict[int, int]:
    """The budgets of bags, in millionths of a credit."""
    return {
        entry.budget.bag: entry.budget.amount
        for entry in written
        if isinstance(entry, Budgeted) and entry.budget.bag is not None
    }


def ended_pilots(db: sqlite3.Connection, pilots: Iterable[int]) -> dict[int, Ended]:
    """Those of these pilots that have ended.

    The times are the scheduler's. Where it has lost its record of a pilot, its end is the last end of
    an attempt that a worker has told.
    """
    found = {}
    for pilot in pilots:
        row = db.execute(
            "SELECT state, started, ended, submitted FROM pilot WHERE id = ?", (pilot,)
        ).fetchone()
        state, started, ended, submitted = row
        if PilotState(state) in IN_SYSTEM:
            continue
        first, last = _as_workers_tell(db, pilot)
        if state == PilotState.VANISHED.value and last is not None:
            ended = last
        found[pilot] = Ended(first if started is None else started, ended if ended is not None else submitted)
    return found


def _as_workers_tell(db: sqlite3.Connection, pilot: int) -> tuple[float | None, float | None]:
    marks = ",".join("?" * len(_TOLD))
    row = db.execute(
        f"SELECT MIN(started), MAX(ended) FROM attempt WHERE pilot = ? AND outcome IN ({marks})",  # noqa: S608
        (pilot, *(outcome.value for outcome in _TOLD)),
    ).fetchone()
    return row[0], row[1]


def uses_of(db: sqlite3.Connection, pilot: int) -> dict[int, Use]:
    """What the attempts of each bag held of a pilot, in processor-seconds."""
    uses: dict[int, Use] = {}
    for bag, outcome, held in processor_seconds(db, "attempt.pilot = ?", (pilot,)):
        known = uses.get(bag, Use())
        field = "useful" if outcome == AttemptOutcome.DONE.value else "wasted"
        uses[bag] = msgspec.structs.replace(known, **{field: getattr(known, field) + held})
    return uses
