"""Messages about bags as rows of the journal: each is due once, and sent at most once.

A message is `due` in the transaction that writes its event. It is `sending` before anything leaves this
machine, so that a daemon that is killed meanwhile is followed by one that does not send it again.
"""

from __future__ import annotations

import sqlite3
from typing import Literal

import msgspec

from adaptor.journal.database import select

NoticeState = Literal["sent", "failed", "unknown"]
"""The fate of a message; `unknown`: the daemon was killed while it was sent."""

HOOK = ""  # the channel of the hook that is run when a bag ends


class Notice(msgspec.Struct, frozen=True):
    bag: int
    event: str
    channel: str
    text: str  # text on the event besides the bag's counts; may be empty


def add_notice(db: sqlite3.Connection, notice: Notice, now: float) -> None:
    """Note a message that is to be sent, unless it was noted before; the caller has begun a transaction."""
    db.execute(
        "INSERT OR IGNORE INTO notice (bag, event, channel, text, at) VALUES (?, ?, ?, ?, ?)",
        (notice.bag, notice.event, notice.channel, notice.text, now),
    )


def due_notices(db: sqlite3.Connection) -> list[Notice]:
    """Notices to be sent, in the order of their events."""
    return select(db, Notice, "notice WHERE state = 'due' ORDER BY at, bag")


def interrupted_notices(db: sqlite3.Connection) -> list[Notice]:
    """Messages whose fate an earlier daemon did not learn; they are not sent again."""
    found = select(db, Notice, "notice WHERE state = 'sending'")
    db.execute("UPDATE notice SET state = 'unknown' WHERE state = 'sending'")
    return found


def may_end_again(db: sqlite3.Connection, bag: int) -> None:
    """A bag is tried again: its next end and its next failure are events of their own."""
    db.execute("DELETE FROM notice WHERE bag = ? AND event IN ('end', 'failure')", (bag,))


def mark_notice(db: sqlite3.Connection, notice: Notice, state: NoticeState | Literal["sending"]) -> None:
    db.execute(
        "UPDATE notice SET state = ? WHERE bag = ? AND event = ? AND channel = ?",
        (state, notice.bag, notice.event, notice.channel),
    )
