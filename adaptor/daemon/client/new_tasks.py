"""The tasks of a new bag, made ready for the journal and the broker.

Large bags come in parts before they are submitted (`journal.staging`). Those whose tasks run after each other
do not: they are made ready in a thread, since 100,000 tasks take seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import MOST, BagSpec, TaskKind
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import TaskRows, read_needs, task_rows
from adaptor.journal.journal import Journal
from adaptor.journal.staging import StagedTasks, every, input_of, staged
from adaptor.kinds.recognising import kinds_by_sample, kinds_of, sample_step
from adaptor.resources import MOST_GPUS, MOST_LETTERS, OwnNeeds, TaskGpus, TaskSize
from adaptor.scheduling.dependencies import Dependencies
from adaptor.units import LARGEST, LONGEST, SHORTEST_TIME, format_duration, format_size, shortened

_MANY = 2_000  # tasks that take some 20 ms


class OwnNeedsOf(msgspec.Struct, frozen=True):
    """Needs of the new tasks that differ from what their bag says."""

    total: int  # the number of new tasks
    needs: Mapping[int, OwnNeeds]  # by the place of a task among them
    name: Callable[[int], str]  # the user's name of the task at a place

    @property
    def all(self) -> bool:
        """Whether there are new tasks, and each has needs of its own."""
        return 0 < self.total == len(self.needs)


def own_needs(tasks: Sequence[TaskInput], first: int = 0) -> OwnNeedsOf:
    """Needs of new tasks that differ from their bag's. `first`: the number of the first of them in the
    bag."""
    return OwnNeedsOf(
        len(tasks),
        {place: task.needs for place, task in enumerate(tasks) if task.needs is not None},
        lambda place: name_of(first + place, tasks[place]),
    )


class NewTasks(msgspec.Struct, frozen=True):
    """New tasks as the journal and the broker get them."""

    rows: TaskRows | StagedTasks
    dependencies: Dependencies
    kinds: tuple[TaskKind, ...]
    own: OwnNeedsOf


async def prepared(journal: Journal, question: api.Submit) -> NewTasks | None:
    """The tasks of a new bag; None: they came before it, and are not there any more.

    Raises UsageError: a task names a parent that cannot be, or an id that is taken.
    """
    spec, tasks = question.bag.spec, question.bag.tasks
    if question.staged:
        there = journal.read(staged, question.key)
        return None if there is None or there.total != question.staged else _staged(journal, spec, there)
    if len(tasks) < _MANY:
        return _prepared(spec, tasks)
    return await asyncio.to_thread(_prepared, spec, tasks)


def _staged(journal: Journal, spec: BagSpec, there: StagedTasks) -> NewTasks:
    sample = journal.read(every, there.bag, sample_step(there.total))
    own = OwnNeedsOf(
        there.total,
        journal.read(read_needs, there.bag),
        lambda number: name_of(number, journal.read(input_of, there.bag, number)),
    )
    return NewTasks(there, Dependencies(), kinds_by_sample(spec, sample, there.total), own)


def _prepared(spec: BagSpec, tasks: Sequence[TaskInput]) -> NewTasks:
    rows = task_rows(tasks)
    return NewTasks(rows, Dependencies.of_new(rows.links), kinds_of(spec, tasks), own_needs(tasks))


_MOST_REASONS = 5
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
    return [f"{own.name(place)}: {refused[place]}" for place in sorted(refused)[:_MOST_REASONS]]


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
