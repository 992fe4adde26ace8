"""A bag that continues earlier ones: which of its tasks are done already, or will be, by their content.

Two tasks are the same if they have the same command, folder and variables of their own, in bags of the same
name, folder and script.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from adaptor.api import TakenOver, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.journal.bag_rows import unpack_task
from adaptor.model import TaskState

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
    for bag in [id for id, packed in rows if _alike(msgspec.msgpack.decode(packed, type=BagSpec), spec)]:
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


def _alike(one: BagSpec, other: BagSpec) -> bool:
    return one.cwd == other.cwd and _body(one) == _body(other)


def _body(spec: BagSpec) -> bytes | None:
    return spec.script.body if spec.script is not None else None


def _tasks_of(db: sqlite3.Connection, bag: int, spec: BagSpec) -> defaultdict[bytes, list[str]]:
    """By content: the states of the tasks that have it; those that are done come last."""
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
