"""Parents by id and by number; what cannot be is told with its task."""

from __future__ import annotations

import pytest

from adaptor.api import TaskInput
from adaptor.scheduling.dependencies import Links
from adaptor.scheduling.task_links import LinkError, links_of, resolved

Names = list[int | str]


def task(id: str | None = None, after: Names | None = None, any: Names | None = None) -> TaskInput:
    return TaskInput("x", id=id, after=tuple(after or ()), after_any=tuple(any or ()))


def test_ids_and_numbers_become_numbers() -> None:
    earlier = {"old": 3}
    tasks = [task("a", ["b", "old", 2, 2]), task("b"), task(None, any=["a", "b", 11])]
    found = resolved(tasks, 10, lambda ids: {id: earlier[id] for id in ids if id in earlier})
    assert links_of(found, 10) == {10: Links((11, 3, 2)), 12: Links((), (10, 11))}


def test_tasks_without_links_are_left_alone() -> None:
    tasks = [task(), task()]
    assert resolved(tasks, 0, lambda _: pytest.fail("nothing is to be looked up")) is tasks


@pytest.mark.parametrize(
    ("tasks", "index", "message"),
    [
        ([task("a"), task("a")], 1, "id: 'a' is that of another task already"),
        ([task("old")], 0, "id: 'old' is that of task 3 already"),
        ([task(), task(after=["b"])], 1, "after: no task has the id 'b'"),
        ([task(any=["b"])], 0, "after_any: no task has the id 'b'"),
        ([task(after=[-1])], 0, "after: there is no task -1"),
        ([task(after=[12])], 0, "after: there is no task 12; tasks count from 0"),
        ([task("a", ["a"])], 0, "wait for each other: 'a' after 'a'"),
        ([task("a", any=["b"]), task("b", [10])], None, "wait for each other: 'a' after 'b' after 'a'"),
    ],
)
def test_what_cannot_be(tasks: list[TaskInput], index: int | None, message: str) -> None:
    with pytest.raises(LinkError) as caught:
        resolved(tasks, 10, lambda ids: {"old": 3} if "old" in ids else {})
    if index is not None:
        assert caught.value.index == index
        assert message in str(caught.value)
    else:
        assert "wait for each other" in str(caught.value)
        assert "'a' after 'b'" in str(caught.value)


def test_a_long_circle_is_told_in_part() -> None:
    count = 50
    tasks = [task(str(number), [str((number + 1) % count)]) for number in range(count)]
    with pytest.raises(LinkError, match=r"after … after") as caught:
        resolved(tasks, 0, lambda _: {})
    assert len(str(caught.value)) < 200
