"""The entries of the ledger in the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from adaptor.budget.accounting.entries import Budgeted, Entry
from adaptor.journal.database import guarded
from adaptor.journal.journal import Journal

_pack = msgspec.msgpack.Encoder().encode
_unpack: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


def write_entry(db: sqlite3.Connection, entry: Entry) -> None:
    """Write one entry; the caller has begun a transaction."""
    db.execute("INSERT INTO credit (entry) VALUES (?)", (_pack(entry),))


def read_entries(journal: Journal) -> list[Entry]:
    """All entries, in the order in which they were written. Raises JournalError."""
    with guarded(journal.path):
        return entries(journal.connection)


def entries(db: sqlite3.Connection) -> list[Entry]:
    return [_unpack.decode(packed) for (packed,) in db.execute("SELECT entry FROM credit ORDER BY id")]


def budgets_of_bags(written: Iterable[Entry]) -> dict[int, int]:
    """By bag: its present budget, in millionths of a credit."""
    return {
        entry.budget.bag: entry.budget.amount
        for entry in written
        if isinstance(entry, Budgeted) and entry.budget.bag is not None
    }
