"""Which events of bags somebody is to be told of: noted in the transaction that writes the event."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.config.notices import Event, NotifyConfig
from adaptor.journal.notice_rows import HOOK, Notice, add_notice, may_end_again
from adaptor.notify.urls import MARK
from adaptor.scheduling.changes import Changes


class NotableEvents:
    def __init__(self, notify: NotifyConfig | None = None, *, hook: bool = False) -> None:
        """`hook`: whether a program is run when a bag ends."""
        self._notify = notify or NotifyConfig()
        self._hook = hook

    def writer(self, changes: Changes, now: float) -> Callable[[sqlite3.Connection], None] | None:
        """What notes the messages about these changes, to be called in their transaction; None: nothing."""
        ended = [bag for bag, tally in changes.tallies.items() if tally.ended]
        failing = [bag for bag, tally in changes.tallies.items() if tally.failed]
        retried = [bag for bag, change in changes.by_user.items() if change == "retried"]
        if not ended and not failing and not retried:
            return None

        def write(db: sqlite3.Connection) -> None:
            for bag in retried:
                may_end_again(db, bag)
            for bag in failing:
                self.note(db, bag, "failure", "", now)
            for bag in ended:
                self.note(db, bag, "end", "", now)

        return write

    def note(self, db: sqlite3.Connection, bag: int, event: Event, text: str, now: float) -> None:
        """Note that all who want to are to be told of an event; the caller has begun a transaction."""
        row = db.execute("SELECT spec FROM bag WHERE id = ?", (bag,)).fetchone()
        if row is None:
            return
        for channel in self._listeners(msgspec.msgpack.decode(row[0], type=BagSpec), event):
            add_notice(db, Notice(bag, event, channel, text), now)

    def _listeners(self, spec: BagSpec, event: Event) -> Iterator[str]:
        for name in spec.notify or self._notify.default:
            channel = self._notify.channels.get(name)
            if name.startswith(MARK) or (channel is not None and event in channel.events):
                yield name
        if self._hook and event == "end":
            yield HOOK
