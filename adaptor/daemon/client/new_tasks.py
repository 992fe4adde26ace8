"""New tasks: their needs, and why no site could run them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import MOST, BagSpec, TaskKind
from adaptor.errors import UsageError
from adaptor.journal.adding import OpenedBag, input_of
from adaptor.journal.bag_rows import TaskRows, read_needs, task_rows
from adaptor.kinds.recognising import kinds_by_sample, sample_step
from adaptor.resources import MOST_GPUS, MOST_LETTERS, OwnNeeds, TaskGpus, TaskSize
from adaptor.units import LARGEST, LONGEST, SHORTEST_TIME, format_duration, format_size, shortened

_MANY = 2_000  # tasks that take some 20 ms if they run after each other


class OwnNeedsOf(msgspec.Struct, frozen=True):
    """Needs of the new tasks that differ from what their bag says."""

    total: int  # the number of new tasks
    needs: Mapping[int, OwnNeeds]  # by the place of a task among them
    name: Callable[[int], str]  # the user's name of the task at a place

    @property
    def all(self) -> bool:
        """Whether there are new tasks, and each has needs of its own."""
        return 0 < self.total == len(self.needs)


def own_needs(tasks: Sequence[TaskInput], first: int = 0, file: str = "") -> OwnNeedsOf:
    """Needs of new tasks that differ from their bag's.

    Args:
        first: the number of the first of them in the bag.
        file: in which they are written.
    """
    return OwnNeedsOf(
        len(tasks),
        {place: task.needs for place, task in enumerate(tasks) if task.needs is not None},
        lambda place: tasks[place].shown(first + place, file),
    )


class NewTasks(msgspec.Struct, frozen=True):
    """The tasks of a bag that is to be published."""

    kinds: tuple[TaskKind, ...]
    own: OwnNeedsOf


def new_tasks(db: sqlite3.Connection, opened: OpenedBag) -> NewTasks:
    """The tasks that came for a bag."""
    bag, total = opened.bag, opened.total
    sample = [input_of(db, bag, number) for number in range(0, total, sample_step(total))]
    file = opened.question.file
    own = OwnNeedsOf(total, read_needs(db, bag), lambda number: input_of(db, bag, number).shown(number, file))
    return NewTasks(kinds_by_sample(opened.question.spec, sample, total), own)


async def prepared(tasks: Sequence[TaskInput], file: str) -> TaskRows | None:
    """The rows of the first tasks of a bag, if they are many: 100,000 that run after each other take seconds.
    None: they are few.

    Raises UsageError: a task names a parent that cannot be, or an id that is taken.
    """
    return await asyncio.to_thread(task_rows, tasks, file=file) if len(tasks) > _MANY else None


MOST_REASONS = 5
_BOUNDS: dict[str, tuple[str, float, float]] = {
    "cpus": ("cpus", 1, MOST),
    "memory": ("mem", 1, LARGEST),
    "gpus": ("gpus", 0, MOST_GPUS),
    "nodes": ("nodes", 1, MOST),
    "time": ("time", SHORTEST_TIME, LONGEST),
}
"""Word that people write, least and most value, by field."""


def out_of_bounds(needs: OwnNeeds) -> str:
    """A message about the first need out of the bounds of bag files; empty: none is."""
    for name, (key, low, high) in _BOUNDS.items():
        value = getattr(needs, name)
        if value is not None and not low <= value <= high:  # true for NaN too
            return f"{key}: {shortened(value)} is not from {low:g} to {high:,.0f}"
    if len(needs.gpu_type) > MOST_LETTERS:
        return f"gpus: {shortened(needs.gpu_type)} has more than {MOST_LETTERS} letters"
    try:
        if needs.gpus:
            TaskGpus(needs.gpus, needs.gpu_type)
    except ValueError as error:
        return f"gpus: {error}"
    return ""


def own_sizes(spec: BagSpec, own: OwnNeedsOf) -> dict[int, TaskSize]:
    """Size of each task that has needs of its own.

    Raises UsageError: its needs contradict each other, or cannot be meant.
    """
    known: dict[OwnNeeds, TaskSize] = {}
    sizes = {}
    for place, needs in own.needs.items():
        if needs not in known:
            try:
                if problem := out_of_bounds(needs):
                    raise ValueError(problem)
                known[needs] = needs.over(spec.task)
            except ValueError as error:
                raise UsageError(f"{own.name(place)}: {error}") from None
        sizes[place] = known[needs]
    return sizes


def check_own_times(spec: BagSpec, own: OwnNeedsOf) -> None:
    """Raises UsageError: the `timeout` of the bag would end a task before the time that it is to take."""
    limit = spec.timeout.seconds if spec.timeout is not None else None
    if limit is None:
        return
    for place, needs in own.needs.items():
        if needs.time is not None and needs.time > limit:
            raise UsageError(
                f"{own.name(place)}: --timeout {spec.timeout} would end it before the "
                f"{format_duration(needs.time)} that it is to take: write a longer one"
            )


def reasons_of(own: OwnNeedsOf, refused: Mapping[int, str]) -> list[str]:
    """One sentence for each of the first tasks that no site can run.

    `refused`: why, by place among the new tasks.
    """
    return [f"{own.name(place)}: {refused[place]}" for place in sorted(refused)[:MOST_REASONS]]


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
