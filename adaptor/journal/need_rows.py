"""What tasks need in place of what their bags say, as rows of the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import cache

import msgspec

from adaptor.resources import OwnNeeds

_pack = msgspec.msgpack.Encoder().encode


def pack_needs(needs: OwnNeeds | None) -> bytes | None:
    return None if needs is None else _pack(needs)


def read_needs(db: sqlite3.Connection, bag: int) -> dict[int, OwnNeeds]:
    """By task of a bag that has needs of its own, or was given more memory."""
    unpack = cache(msgspec.msgpack.Decoder(OwnNeeds).decode)
    rows = db.execute(
        "SELECT number, needs, memory FROM task WHERE bag = ? AND (needs IS NOT NULL OR memory IS NOT NULL)",
        (bag,),
    )
    found = {}
    for task, packed, memory in rows:
        needs = OwnNeeds() if packed is None else unpack(packed)
        found[task] = needs if memory is None else msgspec.structs.replace(needs, memory=memory)
    return found


def write_needs(db: sqlite3.Connection, bag: int, tasks: Iterable[int], needs: OwnNeeds) -> None:
    """Replace what tasks need where `needs` says so; the caller has begun a transaction."""
    for task in tasks:
        (packed,) = db.execute("SELECT needs FROM task WHERE bag = ? AND number = ?", (bag, task)).fetchone()
        earlier = OwnNeeds() if packed is None else msgspec.msgpack.decode(packed, type=OwnNeeds)
        # Memory that the task was given after a failure is kept beside: it would hide what the user says.
        db.execute(
            "UPDATE task SET needs = ?, memory = CASE WHEN ? THEN NULL ELSE memory END"
            " WHERE bag = ? AND number = ?",
            (_pack(needs.before(earlier)), needs.memory is not None, bag, task),
        )


def write_memory(db: sqlite3.Connection, memory: Iterable[tuple[int, int, int]]) -> None:
    """Give tasks more memory: (bytes, bag, task); the caller has begun a transaction."""
    db.executemany("UPDATE task SET memory = ? WHERE bag = ? AND number = ?", memory)
