"""The tasks of a new bag, made ready for the journal and the broker; where they are many, in a thread.

A bag of 100,000 tasks takes seconds, in which workers report and get leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec, TaskKind
from adaptor.journal.bag_rows import TaskRows, task_rows
from adaptor.kinds.recognising import kinds_of
from adaptor.scheduling.dependencies import Dependencies

_MANY = 2_000
"""Tasks that take some 20 ms."""


class NewTasks(msgspec.Struct, frozen=True):
    """What the journal and the broker get."""

    rows: TaskRows
    dependencies: Dependencies
    kinds: tuple[TaskKind, ...]


async def prepared(spec: BagSpec, tasks: Sequence[TaskInput]) -> NewTasks:
    """Raises UsageError: a task names a parent that cannot be, or an id that is taken."""
    if len(tasks) < _MANY:
        return _prepared(spec, tasks)
    return await asyncio.to_thread(_prepared, spec, tasks)


def _prepared(spec: BagSpec, tasks: Sequence[TaskInput]) -> NewTasks:
    rows = task_rows(tasks)
    return NewTasks(rows, Dependencies.of_new(rows.links), kinds_of(spec, tasks))
