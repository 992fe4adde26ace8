"""Rows of bags and of their tasks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError, UsageError
from adaptor.model import AttemptOutcome, TaskState
from adaptor.resources import OwnNeeds
from adaptor.scheduling.dependencies import Links
from adaptor.scheduling.task_links import Known, LinkError, links_of, resolved

_pack = msgspec.msgpack.Encoder().encode
unpack_task: Callable[[bytes], TaskInput] = msgspec.msgpack.Decoder(TaskInput).decode
_WAITING, _BLOCKED = TaskState.WAITING.value, TaskState.BLOCKED.value


TaskRow = tuple[int, bytes, str | None, str, bytes | None]
"""Row of a task: its number, its packed input, its id, its state, its packed needs."""


class TaskRows(msgspec.Struct, frozen=True):
    """New tasks of a bag as its journal writes them."""

    first: int  # the number of the first
    rows: list[TaskRow]
    links: dict[int, Links]  # by task, the parents of those that have any


def task_rows(
    tasks: Sequence[TaskInput], first: int = 0, known: Known = lambda _: {}, file: str = ""
) -> TaskRows:
    """Rows of new tasks; those of a new bag can be prepared in any thread.

    Args:
        first: the number of the first task.
        known: numbers of earlier tasks by their ids.
        file: in which they are written, for messages.

    Raises UsageError: a task names a parent that cannot be, or an id that is taken.
    """
    try:
        tasks = resolved(tasks, first, known)
    except LinkError as error:
        told = tasks[error.index].shown(first + error.index, file)
        raise UsageError(f"{told}: {error}") from None
    rows = [
        (
            number,
            _pack(task),
            task.id,
            _BLOCKED if task.after or task.after_any else _WAITING,
            (None if task.needs is None else _pack(task.needs)),
        )
        for number, task in enumerate(tasks, start=first)
    ]
    return TaskRows(first, rows, links_of(tasks, first))


class AddedTasks(msgspec.Struct, frozen=True):
    """Tasks that were added to a bag."""

    first: int  # the number of the first
    tasks: int
    links: dict[int, Links] = {}
    """Parents by task, for tasks that have any; not told again of a repeated part."""
    repeated: bool = False  # whether they had been added before, by the same key


def insert_bag(db: sqlite3.Connection, bag: int, spec: BagSpec, now: float, *, open: bool, key: str) -> None:
    """Write a bag without tasks, whose number was reserved. The caller has begun a transaction."""
    spec = msgspec.structs.replace(spec, output=spec.output.replace("{bag}", str(bag)))
    db.execute(
        "INSERT INTO bag (id, spec, name, tasks, submitted, waiting, open, client_key)"
        " VALUES (?, ?, ?, 0, ?, 0, ?, ?)",
        (bag, _pack(spec), spec.name, now, open, key),
    )


def insert_tasks(db: sqlite3.Connection, bag: int, new: TaskRows, *, gated: bool = False) -> AddedTasks:
    """Write tasks behind those that a bag has; the caller has begun a transaction.

    `gated`: all are blocked, because the bag runs after others.
    """
    rows = new.rows
    if gated:
        rows = [(number, packed, id, _BLOCKED, needs) for number, packed, id, _, needs in rows]
    # Of 100,000 tasks, the bag's number in each row would be felt.
    db.executemany(
        f"INSERT INTO task (bag, number, input, id, state, needs) VALUES ({bag:d}, ?, ?, ?, ?, ?)",  # noqa: S608
        rows,
    )
    count_tasks(db, bag, len(rows), len(rows) if gated else len(new.links), linked=bool(new.links))
    return AddedTasks(new.first, len(rows), new.links)


def count_tasks(db: sqlite3.Connection, bag: int, total: int, blocked: int, *, linked: bool = False) -> None:
    """Add new tasks, and how many of them are blocked, to the counts of their bag, if it is published."""
    db.execute(
        "UPDATE bag SET tasks = tasks + ?1, waiting = waiting + ?2, blocked = blocked + ?3,"
        " linked = MAX(linked, ?4) WHERE id = ?5",
        (total, total - blocked, blocked, linked, bag),
    )


def spec_of(db: sqlite3.Connection, bag: int) -> BagSpec:
    """The options of a bag. Raises UnknownBagError."""
    row = db.execute("SELECT spec FROM bag WHERE id = ?", (bag,)).fetchone()
    if row is None:
        raise UnknownBagError(bag)
    return msgspec.msgpack.decode(row[0], type=BagSpec)


def numbers_of(db: sqlite3.Connection, bag: int, ids: Iterable[str]) -> dict[str, int]:
    """The numbers of a bag's tasks by their ids; unknown ones are left out."""
    found: dict[str, int] = {}
    for id in ids:
        row = db.execute("SELECT number FROM task WHERE bag = ? AND id = ?", (bag, id)).fetchone()
        if row is not None:
            found[id] = row[0]
    return found


def bag_of_key(db: sqlite3.Connection, key: str) -> int | None:
    """The bag that was submitted with this key; None: there is none."""
    row = db.execute("SELECT id FROM bag WHERE client_key = ?", (key,)).fetchone()
    return None if row is None else int(row[0])


def end_of_bag(db: sqlite3.Connection, bag: int) -> TaskState | None:
    """The end of a bag, as a word for tasks; None: it has not ended. Raises UnknownBagError."""
    row = db.execute("SELECT ended, failed, cancelled FROM bag WHERE id = ?", (bag,)).fetchone()
    if row is None:
        raise UnknownBagError(bag)
    ended, failed, cancelled = row
    if ended is None:
        return None
    if failed:
        return TaskState.FAILED
    return TaskState.CANCELLED if cancelled else TaskState.DONE


def read_needs(db: sqlite3.Connection, bag: int) -> dict[int, OwnNeeds]:
    """Needs by task, for tasks of a bag that have their own, or were given more memory."""
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
        # Memory that the task was given after a failure is kept in addition: it would hide what the user
        # says.
        db.execute(
            "UPDATE task SET needs = ?, memory = CASE WHEN ? THEN NULL ELSE memory END"
            " WHERE bag = ? AND number = ?",
            (_pack(needs.before(earlier)), needs.memory is not None, bag, task),
        )


def write_memory(db: sqlite3.Connection, memory: Iterable[tuple[int, int, int]]) -> None:
    """Give tasks more memory: (bytes, bag, task); the caller has begun a transaction."""
    db.executemany("UPDATE task SET memory = ? WHERE bag = ? AND number = ?", memory)


def requeued_work(db: sqlite3.Connection, bag: int) -> dict[int, float]:
    """Seconds of each task's attempts that went on in the next one."""
    rows = db.execute(
        "SELECT task, SUM(wall) FROM attempt WHERE bag = ? AND outcome = ? AND wall IS NOT NULL"
        " GROUP BY task",
        (bag, AttemptOutcome.REQUEUED.value),
    )
    return dict(rows.fetchall())
