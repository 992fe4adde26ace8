"""The tasks of a large bag come in parts before it is submitted, and no question sees them until it is.

They stand among the tasks of all bags, under the number that the bag will have, which `staged` keeps. If the
bag is never submitted, they go as those of a forgotten bag do.

A bag that continues earlier ones leaves out tasks that these have done, or will do. Two tasks are the same if
they have the same command, folder and variables of their own, in bags of the same name, folder and script.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec

from adaptor.api import TakenOver, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import insert_bag, insert_rows, numbers_of, task_rows, unpack_task
from adaptor.model import TaskState


class StagedTasks(msgspec.Struct, frozen=True):
    """Tasks that came before their bag."""

    bag: int  # the number that it will have
    total: int


def staged(db: sqlite3.Connection, key: str) -> StagedTasks | None:
    """The tasks that came with this key; None: none, or they are forgotten, or their bag is submitted."""
    row = db.execute("SELECT bag, tasks FROM staged WHERE client_key = ?", (key,)).fetchone()
    return None if row is None else StagedTasks(*row)


def stage(
    db: sqlite3.Connection,
    key: str,
    first: int,
    tasks: Sequence[TaskInput],
    now: float,
    taken: Collection[int] = (),
) -> int:
    """Write one more part, once; the number of tasks by now. The caller has begun a transaction.

    `taken`: numbers that its bag does not get.

    Raises UsageError: those before `first` are not there, an id is taken, or tasks name each other.
    """
    there = staged(db, key) or StagedTasks(0, 0)
    if first < there.total:
        return there.total  # it is repeated, since its answer was lost
    if first > there.total:
        raise UsageError("the tasks that came before these are forgotten, since no more came for a long time")
    if any(task.after or task.after_any for task in tasks):
        raise UsageError("tasks that run after others are submitted together, and not in parts")
    bag = there.bag or _reserved(db, taken)
    new = task_rows(tasks, first, lambda ids: numbers_of(db, bag, ids))
    insert_rows(db, bag, new.rows)
    total = first + len(tasks)
    db.execute("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?)", (bag, key, total, now))
    return total


def _reserved(db: sqlite3.Connection, taken: Collection[int]) -> int:
    """A number that no other bag ever gets."""
    nothing = BagSpec(name="", cwd="", output="", environment={})
    bag = insert_bag(db, nothing, 0.0, open=False, key="", taken=taken)
    db.execute("DELETE FROM bag WHERE id = ?", (bag,))
    return bag


def forget_staged(db: sqlite3.Connection, key: str) -> int:
    """Forget what came with this key; the number of bags, 0 or 1. The caller has begun a transaction.

    The rows of the tasks go later (`journal.forgetting`).
    """
    return _forget(db, db.execute("SELECT bag FROM staged WHERE client_key = ?", (key,)).fetchall())


def forget_stale(db: sqlite3.Connection, instant: float) -> int:
    """Forget all bags for which no tasks have come since an instant (epoch seconds)."""
    return _forget(db, db.execute("SELECT bag FROM staged WHERE at < ?", (instant,)).fetchall())


def _forget(db: sqlite3.Connection, bags: list[tuple[int]]) -> int:
    db.executemany("INSERT INTO forgotten (bag, cpus) VALUES (?, 0)", bags)
    db.executemany("DELETE FROM staged WHERE bag = ?", bags)
    return len(bags)


def every(db: sqlite3.Connection, bag: int, step: int) -> list[TaskInput]:
    """Each `step`th task of a bag, from the first on."""
    (total,) = db.execute("SELECT MAX(number) + 1 FROM task WHERE bag = ?", (bag,)).fetchone()
    return [input_of(db, bag, number) for number in range(0, total or 0, step)]


def input_of(db: sqlite3.Connection, bag: int, task: int) -> TaskInput:
    """One task as it was given."""
    (packed,) = db.execute("SELECT input FROM task WHERE bag = ? AND number = ?", (bag, task)).fetchone()
    return unpack_task(packed)


_pack = msgspec.msgpack.Encoder(order="sorted").encode
_TAKEN = (TaskState.DONE.value, TaskState.WAITING.value, TaskState.LEASED.value)


def left_to_run(
    db: sqlite3.Connection, spec: BagSpec, tasks: Sequence[TaskInput]
) -> tuple[list[TaskInput], list[TakenOver]]:
    """The tasks of a new bag that no earlier bag has done or still has to run, and what each of those has.

    A task that stands in the new bag more often than earlier is left as often as it is new.
    """
    left = list(tasks)
    taken: list[TakenOver] = []
    rows = db.execute("SELECT id, spec FROM bag WHERE name = ? ORDER BY id DESC", (spec.name,))
    earlier = [(id, msgspec.msgpack.decode(packed, type=BagSpec)) for id, packed in rows]
    place = (spec.cwd, spec.script and spec.script.body)
    for bag in [id for id, each in earlier if (each.cwd, each.script and each.script.body) == place]:
        if not left:
            break
        have = _tasks_of(db, bag, spec)
        rest, done, to_run = [], 0, 0
        for task in left:
            states = have[_content(task, spec)]
            if not states:
                rest.append(task)
            elif states.pop() == TaskState.DONE.value:
                done += 1
            else:
                to_run += 1
        if done or to_run:
            taken.append(TakenOver(bag=bag, done=done, to_run=to_run))
        left = rest
    return left, taken


def _tasks_of(db: sqlite3.Connection, bag: int, spec: BagSpec) -> defaultdict[bytes, list[str]]:
    """States of the tasks that have the same content, by content; tasks that are done come last."""
    found: defaultdict[bytes, list[str]] = defaultdict(list)
    marks = ",".join("?" * len(_TAKEN))
    rows = db.execute(
        f"SELECT input, state FROM task WHERE bag = ? AND state IN ({marks}) ORDER BY state = ?",  # noqa: S608
        (bag, *_TAKEN, TaskState.DONE.value),
    )
    for packed, state in rows:
        found[_content(unpack_task(packed), spec)].append(state)
    return found


def _content(task: TaskInput, spec: BagSpec) -> bytes:
    return _pack((task.command, task.cwd or spec.cwd, task.environment or {}))
