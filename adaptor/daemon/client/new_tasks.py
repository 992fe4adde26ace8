"""The tasks of a new bag, made ready for the journal and the broker; where they are many, in a thread.

A bag of 100,000 tasks takes seconds, in which workers report and get leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import MOST, BagSpec, TaskKind
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import TaskRows, task_rows
from adaptor.kinds.recognising import kinds_of
from adaptor.resources import MOST_GPUS, MOST_LETTERS, OwnNeeds, TaskGpus, TaskSize
from adaptor.scheduling.dependencies import Dependencies
from adaptor.units import LARGEST, LONGEST, format_duration, format_size, shortened

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


_MOST_REASONS = 5
_SHORTEST_TIME = 0.001
"""Seconds."""
_BOUNDS: dict[str, tuple[str, float, float]] = {
    "cpus": ("cpus", 1, MOST),
    "memory": ("mem", 1, LARGEST),
    "gpus": ("gpus", 0, MOST_GPUS),
    "nodes": ("nodes", 1, MOST),
    "time": ("time", _SHORTEST_TIME, LONGEST),
}
"""By field: the word that people write, the least and the most."""


def needs_of(tasks: Sequence[TaskInput]) -> dict[int, OwnNeeds]:
    """By task that has needs of its own."""
    return {number: task.needs for number, task in enumerate(tasks) if task.needs is not None}


def out_of_bounds(needs: OwnNeeds) -> str:
    """Which of these needs cannot be meant, as the files of people are checked; empty: none."""
    for name, (key, low, high) in _BOUNDS.items():
        value = getattr(needs, name)
        if value is not None and not low <= value <= high:  # as no NaN is
            return f"{key}: {shortened(value)} is not from {low:g} to {high:,.0f}"
    if len(needs.gpu_type) > MOST_LETTERS:
        return f"gpus: {shortened(needs.gpu_type)} has more than {MOST_LETTERS} letters"
    try:
        if needs.gpus:
            TaskGpus(needs.gpus, needs.gpu_type)
    except ValueError as error:
        return f"gpus: {error}"
    return ""


def own_sizes(spec: BagSpec, tasks: Sequence[TaskInput]) -> dict[int, TaskSize]:
    """By task that has needs of its own: its size.

    Raises UsageError: its needs contradict each other, or cannot be meant.
    """
    known: dict[OwnNeeds, TaskSize] = {}
    sizes = {}
    for number, needs in needs_of(tasks).items():
        if needs not in known:
            try:
                if problem := out_of_bounds(needs):
                    raise ValueError(problem)
                known[needs] = needs.over(spec.task)
            except ValueError as error:
                raise UsageError(f"{name_of(number, tasks[number])}: {error}") from None
        sizes[number] = known[needs]
    return sizes


def check_own_times(spec: BagSpec, tasks: Sequence[TaskInput]) -> None:
    """Raises UsageError: the `timeout` of the bag would end a task before the time that it is to take."""
    limit = spec.timeout.seconds if spec.timeout is not None else None
    if limit is None:
        return
    for number, needs in needs_of(tasks).items():
        if needs.time is not None and needs.time > limit:
            raise UsageError(
                f"{name_of(number, tasks[number])}: --timeout {spec.timeout} would end it before the "
                f"{format_duration(needs.time)} that it is to take: write a longer one"
            )


def reasons_of(tasks: Sequence[TaskInput], refused: Mapping[int, str], first: int = 0) -> list[str]:
    """One sentence for each of the first tasks that no site can run.

    `refused`: why, by place among the new tasks; `first`: the number that the first of these has in its bag.
    """
    shown = sorted(refused)[:_MOST_REASONS]
    return [f"{name_of(first + each, tasks[each])}: {refused[each]}" for each in shown]


def words_of(needs: OwnNeeds) -> str:
    """Needs as their user wrote them: `cpus 4, mem 8G`."""
    told = {
        "cpus": needs.cpus,
        "mem": None if needs.memory is None else format_size(needs.memory),
        "gpus": None if needs.gpus is None else f"{needs.gpu_type}:{needs.gpus:g}".lstrip(":"),
        "nodes": needs.nodes,
        "time": None if needs.time is None else format_duration(needs.time),
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)


def name_of(number: int, task: TaskInput) -> str:
    """A task as its user finds it."""
    return f"line {task.line}" if task.line else f"task {number}"
