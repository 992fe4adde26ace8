"""The entries of the ledger in the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from adaptor.budget.accounting.entries import Budgeted, Entry, Recounted, Reserved, Settled
from adaptor.budget.accounting.settled import settled_pilot
from adaptor.journal.database import guarded
from adaptor.journal.journal import Journal

_pack = msgspec.msgpack.Encoder().encode
_unpack: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


def write_entry(db: sqlite3.Connection, entry: Entry) -> None:
    """Write one entry; the caller has begun a transaction."""
    pilot = entry.pilot if isinstance(entry, Reserved | Settled | Recounted) else None
    bag = entry.budget.bag if isinstance(entry, Budgeted) else None
    db.execute("INSERT INTO credit (pilot, bag, entry) VALUES (?, ?, ?)", (pilot, bag, _pack(entry)))


def read_entries(journal: Journal) -> list[Entry]:
    """All entries, in the order in which they were written. Raises JournalError."""
    with guarded(journal.path):
        return entries(journal.connection)


def entries(db: sqlite3.Connection) -> list[Entry]:
    """All of them, in the order in which they were written."""
    return [_unpack.decode(packed) for (packed,) in db.execute("SELECT entry FROM credit ORDER BY id")]


def entries_of_pilot(db: sqlite3.Connection, pilot: int) -> list[Entry]:
    """In their order."""
    rows = db.execute("SELECT entry FROM credit WHERE pilot = ? ORDER BY id", (pilot,))
    return [_unpack.decode(packed) for (packed,) in rows]


def gpus_of_pilot(db: sqlite3.Connection, pilot: int) -> float:
    """The GPUs for which a pilot is, or was, charged."""
    held = [entry.gpus for entry in entries_of_pilot(db, pilot) if isinstance(entry, Reserved)]
    return held[-1] if held else 0.0


def forgotten_payers(db: sqlite3.Connection, pilot: int) -> set[int]:
    """The bags that paid for a settled pilot and are forgotten."""
    known = settled_pilot(entries_of_pilot(db, pilot))
    bags = {part.bag for part in known.parts} if known is not None else set()
    return {bag for bag in bags if not db.execute("SELECT 1 FROM bag WHERE id = ?", (bag,)).fetchone()}


def forget_budget(db: sqlite3.Connection, bag: int) -> None:
    """Remove the budget of a bag; the caller has begun a transaction."""
    db.execute("DELETE FROM credit WHERE bag = ?", (bag,))


def budgets_of_bags(written: Iterable[Entry]) -> dict[int, int]:
    """By bag: its present budget, in millionths of a credit."""
    return {
        entry.budget.bag: entry.budget.amount
        for entry in written
        if isinstance(entry, Budgeted) and entry.budget.bag is not None
    }
