"""What has changed in bags since an event, for clients that follow them.

Each end of a task, each task that is put back and the close of a bag have a number in the bag, which goes up
by one. A task keeps the number of its last event only, so there are never more of them than tasks.
"""

from __future__ import annotations

import sqlite3

import msgspec

from adaptor import api
from adaptor.api import BagEvents, TaskEvent
from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError

_MOST_BYTES = 8 * 1024 * 1024
"""Bytes of the answers of calls that are sent at a time."""


def events(db: sqlite3.Connection, question: api.GetEvents) -> list[BagEvents]:
    """By bag what has changed; of all bags together at most as many tasks as are asked for.

    Raises:
        UnknownBagError: there is no such bag.
    """
    found, left = [], question.most
    for bag, since in sorted(question.since.items()):
        told = _events_of(db, bag, since, left)
        left -= len(told.tasks)
        found.append(told)
    return found


def _events_of(db: sqlite3.Connection, bag: int, since: int, most: int) -> BagEvents:
    row = db.execute(
        "SELECT events, open, ended, tasks, done, failed, cancelled, spec FROM bag WHERE id = ?", (bag,)
    ).fetchone()
    if row is None:
        raise UnknownBagError(bag)
    last, is_open, ended, total, done, failed, cancelled, spec = row
    tasks = _tasks(db, bag, since, most) if last > since and most else []
    more = last > since and (not most or (bool(tasks) and tasks[-1].event < last))
    return BagEvents(
        bag=bag,
        last=(tasks[-1].event if tasks else since) if more else last,
        more=more,
        open=bool(is_open),
        ended=ended is not None,
        total=total,
        done=done,
        failed=failed,
        cancelled=cancelled,
        output=msgspec.msgpack.decode(spec, type=_SpecOutput).output,
        tasks=tasks,
    )


class _SpecOutput(msgspec.Struct):
    """The part of a BagSpec that is shown."""

    output: str


assert "output" in BagSpec.__struct_fields__


def _tasks(db: sqlite3.Connection, bag: int, since: int, most: int) -> list[TaskEvent]:
    """At most `most` tasks, and little more than `_MOST_BYTES` of answers."""
    rows = db.execute(
        "SELECT t.number, t.event, t.state, COALESCE(a.number, 0), a.exit_code, a.signal,"
        " COALESCE(t.error, a.error), a.started, a.wall, a.node, a.answer"
        " FROM task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        " WHERE t.bag = ? AND t.event > ? ORDER BY t.event LIMIT ?",
        (bag, since, most),
    )
    found: list[TaskEvent] = []
    room = _MOST_BYTES
    for row in rows:
        found.append(TaskEvent(*row))
        room -= len(found[-1].answer or b"")
        if room <= 0:
            break
    return found
