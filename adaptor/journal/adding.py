"""Bags are opened, get their tasks in parts, and are published: then questions see them, and they run.

The tasks of a bag that is not published stand among those of all bags, under the number that was reserved for
it. If it is never published, they go as those of a forgotten bag do.

Every client numbers the tasks that it adds to a bag, whether the bag is published or not: a part that is
repeated counts once, and one after a gap is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from itertools import count

import msgspec

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError, UsageError
from adaptor.journal.bag_rows import (
    AddedTasks,
    TaskRows,
    count_tasks,
    insert_bag,
    insert_tasks,
    numbers_of,
    task_rows,
    unpack_task,
)
from adaptor.model import TaskState

FORGOTTEN = "this bag is not there any more, and was not published: submit it again"


class OpenedBag(msgspec.Struct, frozen=True):
    """A bag that is not published."""

    bag: int
    question: api.Open
    total: int  # its tasks by now
    linked: int  # of them, those that run after others


def opened(db: sqlite3.Connection, key: str) -> OpenedBag | None:
    """The bag that was opened with this key; None: there is none, or it is forgotten, or published."""
    row = db.execute(
        "SELECT bag, question, COALESCE(sent, 0), linked FROM unpublished"
        " LEFT JOIN added USING (bag, client_key) WHERE client_key = ?",
        (key,),
    ).fetchone()
    if row is None:
        return None
    bag, question, total, linked = row
    return OpenedBag(bag, msgspec.msgpack.decode(question, type=api.Open), total, linked)


def open_bag(db: sqlite3.Connection, question: api.Open, now: float) -> int:
    """Reserve the number of a new bag. The caller has begun a transaction."""
    bag = _reserved(db, question.taken)
    packed = msgspec.msgpack.encode(question)
    db.execute("INSERT INTO unpublished VALUES (?, ?, ?, ?, 0)", (bag, question.key, packed, now))
    return bag


def _reserved(db: sqlite3.Connection, taken: Collection[int]) -> int:
    """The number after those of all bags that ever were, which is not `taken`; no other bag ever gets it."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'bag'").fetchone()
    bag = next(free for free in count(1 if row is None else row[0] + 1) if free not in taken)
    if row is None:
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('bag', ?)", (bag,))
    else:
        db.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'bag'", (bag,))
    return bag


def add(
    db: sqlite3.Connection,
    bag: int,
    key: str,
    first: int,
    tasks: Sequence[TaskInput],
    now: float,
    *,
    file: str = "",
    rows: TaskRows | None = None,
    alone: bool = False,
    gated: bool = False,
) -> AddedTasks:
    """Write more tasks of a client, once. The caller has begun a transaction.

    Args:
        bag: 0: the one that was opened with this key, and is not published.
        key: the client's.
        first: how many tasks came by this key before.
        file: in which they are written, for messages.
        rows: of these tasks, if they are the first of the bag and were prepared.
        alone: the bag takes tasks only by the key that has opened it.
        gated: they are blocked, because the bag runs after others.

    Raises:
        UnknownBagError: there is no such bag.
        UsageError: it is closed or forgotten, tasks before `first` are missing, the part was repeated with
            other tasks or too late, a task names a parent that cannot be, or an id is taken.
    """
    there = None
    if not bag:
        if (there := opened(db, key)) is None:
            raise UsageError(FORGOTTEN)
        bag = there.bag
    row = db.execute(
        "SELECT sent, first, tasks FROM added WHERE bag = ? AND client_key = ?", (bag, key)
    ).fetchone()
    sent, number, last = row or (0, 0, 0)
    if row is not None and first < sent:
        begin = sent - last
        if first < begin or first + len(tasks) > sent:
            raise UsageError(
                f"bag {bag}: the key {key!r} stands for {sent} tasks, and tasks {first} to"
                f" {first + len(tasks) - 1} are not in its last part"
            )
        return AddedTasks(number + first - begin, len(tasks), repeated=True)
    total = _total_of_open(db, bag, key, alone=alone) if there is None else there.total
    if first != sent:
        raise UsageError(f"bag {bag} has {sent} tasks by this key, so the next one has not number {first}")
    if rows is None or total:
        rows = task_rows(tasks, total, lambda ids: numbers_of(db, bag, ids), file)
    done = insert_tasks(db, bag, rows, gated=gated)
    db.execute(
        "UPDATE unpublished SET at = ?, linked = linked + ? WHERE bag = ?", (now, len(done.links), bag)
    )
    db.execute(
        "INSERT OR REPLACE INTO added VALUES (?, ?, ?, ?, ?)",
        (bag, key, sent + len(tasks), done.first, len(tasks)),
    )
    return done


def _total_of_open(db: sqlite3.Connection, bag: int, key: str, *, alone: bool) -> int:
    """The number of tasks of a bag that takes more by this key. Raises UnknownBagError; UsageError: it takes
    no more."""
    row = db.execute("SELECT open, tasks, client_key FROM bag WHERE id = ?", (bag,)).fetchone()
    if row is None:
        raise UnknownBagError(bag)
    is_open, total, opener = row
    if not is_open:
        raise UsageError(f"bag {bag} is closed and takes no more tasks; open another: adaptor submit --open")
    if alone and key != opener:
        raise UsageError(f"bag {bag} has the calls of a program: no other tasks can be appended to it")
    return int(total)


def publish(
    db: sqlite3.Connection, opened: OpenedBag, spec: BagSpec, now: float, *, open: bool, gated: bool
) -> None:
    """Publish a bag, with these options, and the tasks that came for it. `{bag}` in the name of the output
    folder becomes its number. The caller has begun a transaction.

    Args:
        open: whether tasks may be added later.
        gated: all tasks are blocked, because the bag runs after others.
    """
    bag, total, linked = opened.bag, opened.total, opened.linked
    insert_bag(db, bag, spec, now, open=open, key=opened.question.key)
    if gated:
        db.execute("UPDATE task SET state = ? WHERE bag = ?", (TaskState.BLOCKED.value, bag))
    count_tasks(db, bag, total, total if gated else linked, linked=bool(linked))
    db.execute("DELETE FROM unpublished WHERE bag = ?", (bag,))


def replace_tasks(db: sqlite3.Connection, opened: OpenedBag, tasks: Sequence[TaskInput]) -> OpenedBag:
    """Give a bag that is not published other tasks. The caller has begun a transaction."""
    bag, total = opened.bag, len(tasks)
    db.execute("DELETE FROM task WHERE bag = ?", (bag,))
    done = insert_tasks(db, bag, task_rows(tasks))
    db.execute("UPDATE added SET sent = ?, tasks = ? WHERE bag = ?", (total, total, bag))
    return msgspec.structs.replace(opened, total=total, linked=len(done.links))


_FEW = 5_000  # tasks that go at once


def forget_unpublished(db: sqlite3.Connection, key: str) -> int:
    """Forget the bag that was opened with this key; the number of bags of which rows are left, 0 or 1. The
    caller has begun a transaction.

    The rows of many tasks go later (`journal.forgetting`); without any, the last number is free again.
    """
    there = opened(db, key)
    if there is None:
        return 0
    if there.total > _FEW:
        return _forget(db, [(there.bag,)])
    for table in ("task", "added", "unpublished"):
        db.execute(f"DELETE FROM {table} WHERE bag = ?", (there.bag,))  # noqa: S608
    db.execute("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'bag' AND seq = ?", (there.bag,))
    return 0


def forget_stale(db: sqlite3.Connection, instant: float) -> int:
    """Forget all bags that are not published, and to which no tasks came since an instant (epoch seconds)."""
    return _forget(db, db.execute("SELECT bag FROM unpublished WHERE at < ?", (instant,)).fetchall())


def _forget(db: sqlite3.Connection, bags: list[tuple[int]]) -> int:
    db.executemany("INSERT INTO forgotten (bag, cpus) VALUES (?, 0)", bags)
    db.executemany("DELETE FROM unpublished WHERE bag = ?", bags)
    db.executemany("DELETE FROM added WHERE bag = ?", bags)
    return len(bags)


def inputs_of(db: sqlite3.Connection, bag: int) -> list[TaskInput]:
    """All tasks of a bag as they were given."""
    rows = db.execute("SELECT input FROM task WHERE bag = ? ORDER BY number", (bag,))
    return [unpack_task(packed) for (packed,) in rows]


def input_of(db: sqlite3.Connection, bag: int, task: int) -> TaskInput:
    """One task as it was given."""
    (packed,) = db.execute("SELECT input FROM task WHERE bag = ? AND number = ?", (bag, task)).fetchone()
    return unpack_task(packed)
