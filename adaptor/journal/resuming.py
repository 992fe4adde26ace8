"""Bags that continue earlier ones: they leave out tasks that these have done, or will do.

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
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import unpack_task
from adaptor.model import TaskState
from adaptor.units import shortened

_pack = msgspec.msgpack.Encoder(order="sorted").encode
_TAKEN = (TaskState.DONE.value, TaskState.WAITING.value, TaskState.LEASED.value)


def left_to_run(
    db: sqlite3.Connection, spec: BagSpec, tasks: Sequence[TaskInput], file: str = ""
) -> tuple[list[TaskInput], list[TakenOver]]:
    """The tasks of a new bag that no earlier bag has done or still has to run, and what each of those has.

    A task that stands in the new bag more often than earlier is left as often as it is new. The numbers in
    `after` and `after_any` become those among the tasks that are left. `file`: in which they are written.

    Raises UsageError: a task runs after one that is left out.
    """
    left = list(range(len(tasks)))
    taken: list[TakenOver] = []
    rows = db.execute("SELECT id, spec FROM bag WHERE name = ? ORDER BY id DESC", (spec.name,))
    earlier = [(id, msgspec.msgpack.decode(packed, type=BagSpec)) for id, packed in rows]
    place = (spec.cwd, spec.script and spec.script.body)
    for bag in [id for id, each in earlier if (each.cwd, each.script and each.script.body) == place]:
        if not left:
            break
        have = _tasks_of(db, bag, spec)
        rest, done, to_run = [], 0, 0
        for number in left:
            states = have[_content(tasks[number], spec)]
            if not states:
                rest.append(number)
            elif states.pop() == TaskState.DONE.value:
                done += 1
            else:
                to_run += 1
        if done or to_run:
            taken.append(TakenOver(bag=bag, done=done, to_run=to_run))
        left = rest
    return _renumbered(tasks, left, file) if taken else list(tasks), taken


def _renumbered(tasks: Sequence[TaskInput], left: Sequence[int], file: str) -> list[TaskInput]:
    numbers = {number: place for place, number in enumerate(left)}

    def parents(kind: str, number: int) -> tuple[int | str, ...]:
        task = tasks[number]
        found: tuple[int | str, ...] = getattr(task, kind)
        for parent in found:
            if isinstance(parent, int) and parent not in numbers:
                name = shortened(tasks[parent].id or str(parent))
                told = f"{task.shown(number, file)}: {kind}"
                raise UsageError(f"{told}: an earlier bag has task {name}: leave --resume out")
        return tuple(numbers[parent] if isinstance(parent, int) else parent for parent in found)

    return [
        msgspec.structs.replace(
            tasks[number],
            after=parents("after", number),
            after_any=parents("after_any", number),
        )
        for number in left
    ]


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
