"""Appends: numbers go on, each append counts once, and only an open bag takes any."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError, UsageError
from adaptor.journal.bag_rows import AppendedTasks, bag_of_key
from adaptor.journal.journal import Journal
from adaptor.protocol.messages import AttemptKey

SPEC = BagSpec(name="b", cwd="/", output="/out/{bag}", environment={})


def tasks(*names: str) -> list[TaskInput]:
    return [TaskInput(name) for name in names]


def commands(journal: Journal, bag: int, count: int) -> list[object]:
    return [task.command for task in journal.inputs([AttemptKey(bag, number, 1) for number in range(count)])]


def test_numbers_go_on_and_a_repeated_append_counts_once(journal: Journal, tmp_path: Path) -> None:
    bag = journal.add_bag(SPEC, tasks("a"), 1.0, open=True)
    assert journal.append(bag, "one", tasks("b", "c")) == AppendedTasks(1, 2)
    assert journal.append(bag, "two", tasks("d")) == AppendedTasks(3, 1)
    assert journal.append(bag, "one", tasks("b", "c")) == AppendedTasks(1, 2, repeated=True)
    journal.close()
    again = Journal(tmp_path)
    assert again.append(bag, "two", tasks("d")) == AppendedTasks(3, 1, repeated=True)
    assert commands(again, bag, 4) == ["a", "b", "c", "d"]
    assert again.connection.execute("SELECT tasks, waiting FROM bag").fetchall() == [(4, 4)]
    again.close()


def test_a_key_stands_for_one_append_of_one_bag(journal: Journal) -> None:
    bag, other = (journal.add_bag(SPEC, [], 1.0, open=True) for _ in range(2))
    journal.append(bag, "key", tasks("a"))
    with pytest.raises(UsageError, match="stands for an append of 1 tasks, not of 2"):
        journal.append(bag, "key", tasks("a", "b"))
    assert journal.append(other, "key", tasks("x", "y")) == AppendedTasks(0, 2)


def test_only_an_open_bag_takes_tasks(journal: Journal) -> None:
    bag = journal.add_bag(SPEC, tasks("a"), 1.0)
    with pytest.raises(UsageError, match=f"bag {bag} is closed and takes no more tasks"):
        journal.append(bag, "key", tasks("b"))
    with pytest.raises(UnknownBagError):
        journal.append(99, "key", tasks("b"))


def test_a_bag_is_found_by_the_key_of_its_submission(journal: Journal) -> None:
    bag = journal.add_bag(SPEC, [], 1.0, open=True, key="mine")
    assert (journal.read(bag_of_key, "mine"), journal.read(bag_of_key, "other")) == (bag, None)
