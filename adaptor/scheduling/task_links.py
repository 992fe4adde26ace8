"""The parents of new tasks as numbers: ids are looked up, and an unknown id is reported with its task.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec

from adaptor.api import TaskInput
from adaptor.scheduling.dependencies import Links
from adaptor.units import shortened


class LinkError(ValueError):
    """A task names a parent that cannot be, or an id that is taken."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index  # the task's place among the new ones


Known = Callable[[set[str]], Mapping[str, int]]
"""The numbers of those of these ids that tasks of the bag have already."""


def resolved(tasks: Sequence[TaskInput], first: int, known: Known) -> Sequence[TaskInput]:
    """The tasks with the numbers of their parents in place of ids.

    Args:
        first: the number of the first of them; those before it are in the bag already.

    Raises:
        LinkError: an id stands twice or is unknown, a number is no task, or tasks wait for each other.
    """
    if not any(task.id is not None or task.after or task.after_any for task in tasks):
        return tasks
    own = _own_ids(tasks, first)
    named = {link for task in tasks for link in (*task.after, *task.after_any) if isinstance(link, str)}
    earlier = known({*own, *named})
    for index, task in enumerate(tasks):
        if task.id is not None and task.id in earlier:
            raise LinkError(index, f"id: {shortened(task.id)} is that of task {earlier[task.id]} already")
    numbers = {**earlier, **own}
    found = [_with_numbers(index, task, first + len(tasks), numbers) for index, task in enumerate(tasks)]
    _check_order(found, first)
    return found


def links_of(tasks: Sequence[TaskInput], first: int) -> dict[int, Links]:
    """The parents of resolved tasks, by the number of the task; those without are left out."""
    return {first + index: link_of(task) for index, task in enumerate(tasks) if task.after or task.after_any}


def link_of(task: TaskInput) -> Links:
    """The parents of a resolved task."""
    return Links(_numbers(task.after), _numbers(task.after_any))


def _numbers(parents: Sequence[int | str]) -> tuple[int, ...]:
    return tuple(parent for parent in parents if isinstance(parent, int))


def _own_ids(tasks: Sequence[TaskInput], first: int) -> dict[str, int]:
    own: dict[str, int] = {}
    for index, task in enumerate(tasks):
        if task.id is None:
            continue
        if task.id in own:
            raise LinkError(index, f"id: {shortened(task.id)} is that of another task already")
        own[task.id] = first + index
    return own


def _with_numbers(index: int, task: TaskInput, total: int, numbers: Mapping[str, int]) -> TaskInput:
    if not (task.after or task.after_any):
        return task
    kinds = {"after": task.after, "after_any": task.after_any}
    found = {
        kind: tuple(dict.fromkeys(_number(index, kind, parent, total, numbers) for parent in parents))
        for kind, parents in kinds.items()
    }
    return msgspec.structs.replace(task, after=found["after"], after_any=found["after_any"])


def _number(index: int, kind: str, parent: int | str, total: int, numbers: Mapping[str, int]) -> int:
    if isinstance(parent, str):
        if parent not in numbers:
            raise LinkError(index, f"{kind}: no task has the id {shortened(parent)}")
        return numbers[parent]
    if not 0 <= parent < total:
        raise LinkError(index, f"{kind}: there is no task {parent}; tasks count from 0")
    return parent


def _check_order(tasks: Sequence[TaskInput], first: int) -> None:
    """Raises LinkError: some of these tasks wait for each other, or for themselves."""
    links = links_of(tasks, first)
    if all(parent < number for number, link in links.items() for parent in link.parents):
        return  # the case of most files
    graph = {number: [parent for parent in link.parents if parent >= first] for number, link in links.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[int] = error.args[1]
        shown = [tasks[number - first].id or str(number) for number in reversed(circle)]
        middle = shown if len(shown) <= 8 else [*shown[:6], "…", shown[-1]]
        told = " after ".join(shortened(name) if name != "…" else name for name in middle)
        raise LinkError(circle[-1] - first, f"after: these tasks wait for each other: {told}") from None
