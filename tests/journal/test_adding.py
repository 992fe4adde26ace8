"""Bags are opened, get their tasks in parts, each once, and are published as a whole or never."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError, UsageError
from adaptor.journal import adding
from adaptor.journal.adding import forget_stale, forget_unpublished, opened
from adaptor.journal.bag_rows import AddedTasks, bag_of_key
from adaptor.journal.forgetting import forget_some
from adaptor.journal.journal import Journal
from adaptor.journal.recovery import load_bag
from adaptor.journal.views import bags
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey
from tests.examples import examples
from tests.journal.bags import add, add_bag, publish

SPEC = BagSpec(name="b", cwd="/", output="/out/{bag}", environment={})


def tasks(*names: str) -> list[TaskInput]:
    return [TaskInput(name) for name in names]


def commands(journal: Journal, bag: int, count: int) -> list[object]:
    return [task.command for task in journal.inputs([AttemptKey(bag, number, 1) for number in range(count)])]


def rows(journal: Journal) -> int:
    return int(journal.connection.execute("SELECT COUNT(*) FROM task").fetchone()[0])


def compact(journal: Journal) -> None:
    more = True
    while more:
        with journal.transaction() as db:
            more = forget_some(db, 0.0)


def open_bag(journal: Journal, key: str = "key", now: float = 1.0, **more: object) -> int:
    with journal.transaction() as db:
        return adding.open_bag(db, api.Open(key, SPEC, **more), now)  # type: ignore[arg-type]


def test_a_bag_is_seen_by_nobody_until_it_is_published(journal: Journal, tmp_path: Path) -> None:
    bag = open_bag(journal)
    assert add(journal, 0, "key", tasks("a", "b")) == AddedTasks(0, 2)
    assert journal.read(bags, "all") == []
    journal.close()
    again = Journal(tmp_path)  # the daemon was killed
    assert again.read(bags, "all") == []
    assert add(again, 0, "key", tasks("c"), 2) == AddedTasks(2, 1)
    assert publish(again, "key") == bag
    assert commands(again, bag, 3) == ["a", "b", "c"]
    assert again.bag_spec(bag).output == f"/out/{bag}"
    assert load_bag(again, bag).count(TaskState.WAITING) == 3
    assert again.read(opened, "key") is None
    assert again.read(bag_of_key, "key") == bag
    again.close()


def test_only_who_has_opened_a_bag_adds_to_it_before_it_is_published(journal: Journal) -> None:
    bag = open_bag(journal)
    with pytest.raises(UsageError, match="was not published"):
        add(journal, 0, "other", tasks("a"))
    for unknown in (bag, 99):
        with pytest.raises(UnknownBagError):
            add(journal, unknown, "key", tasks("a"))
    publish(journal, "key", open=True)
    assert add(journal, bag, "other", tasks("a")) == AddedTasks(0, 1)
    with pytest.raises(UsageError, match="was not published"):
        add(journal, 0, "key", tasks("a"))


def test_a_repeated_part_counts_once_and_a_gap_is_refused(journal: Journal, tmp_path: Path) -> None:
    bag = add_bag(journal, SPEC, tasks("a"), 1.0, open=True, key="mine")
    assert add(journal, bag, "one", tasks("b", "c")) == AddedTasks(1, 2)
    assert add(journal, bag, "two", tasks("d")) == AddedTasks(3, 1)
    assert add(journal, bag, "one", tasks("b", "c")) == AddedTasks(1, 2, repeated=True)
    assert add(journal, bag, "one", tasks("e"), 2) == AddedTasks(4, 1)
    with pytest.raises(UsageError, match="has 3 tasks by this key, so the next one has not number 4"):
        add(journal, bag, "one", tasks("f"), 4)
    journal.close()
    again = Journal(tmp_path)
    assert add(again, bag, "two", tasks("d")) == AddedTasks(3, 1, repeated=True)
    assert add(again, bag, "one", tasks("e"), 2) == AddedTasks(4, 1, repeated=True)
    for first, some in ((0, tasks("b", "c")), (2, tasks("e", "f"))):
        with pytest.raises(UsageError, match="are not in its last part"):
            add(again, bag, "one", some, first)
    assert commands(again, bag, 5) == ["a", "b", "c", "d", "e"]
    assert again.connection.execute("SELECT tasks, waiting FROM bag").fetchall() == [(5, 5)]
    again.close()


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(1, 3)), max_size=15)


@given(steps=STEPS)
@examples(60)
def test_parts_of_several_clients_that_are_repeated_are_there_once_and_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    """`steps`: a client, the tasks of its next part, and how often the part comes."""
    journal = Journal(tmp_path_factory.mktemp("state"))
    bag = add_bag(journal, SPEC, [], 1.0, open=True)
    sent: dict[str, int] = {}
    written: list[str] = []
    for client, count, times in steps:
        first = sent.get(client, 0)
        names = [f"{client}{number}" for number in range(first, first + count)]
        found = {add(journal, bag, client, tasks(*names), first).first for _ in range(times)}
        assert found == {len(written)}
        written += names
        sent[client] = first + count
    assert commands(journal, bag, len(written)) == written
    journal.close()


def test_the_number_of_a_bag_is_not_taken(journal: Journal) -> None:
    assert open_bag(journal, taken=(1, 2)) == 3
    assert add_bag(journal, SPEC, tasks("x"), 1.0) == 4


def test_bags_that_come_at_the_same_time_have_their_own_tasks(journal: Journal) -> None:
    one, two = open_bag(journal, "one"), open_bag(journal, "two")
    for part in range(3):
        add(journal, 0, "one", tasks(f"one {part}"), part)
        add(journal, 0, "two", tasks(f"two {part}"), part)
    small = add_bag(journal, SPEC, tasks("x"), 1.0)
    assert (publish(journal, "two"), publish(journal, "one")) == (two, one)
    assert len({small, one, two}) == 3
    assert [commands(journal, bag, 3)[-1] for bag in (one, two)] == ["one 2", "two 2"]


def test_ids_are_unique_over_all_parts_and_a_later_part_may_name_earlier_tasks(journal: Journal) -> None:
    bag = open_bag(journal)
    add(journal, 0, "key", [TaskInput("a", id="x")])
    with pytest.raises(UsageError, match="that of task 0 already"):
        add(journal, 0, "key", [TaskInput("b", id="x")], 1)
    add(journal, 0, "key", [TaskInput("b", after=("x",)), TaskInput("c", after_any=(1,))], 1)
    with pytest.raises(UsageError, match="task 3: after: no task has the id 'y'"):
        add(journal, 0, "key", [TaskInput("d", after=("y",))], 3)
    publish(journal, "key")
    assert load_bag(journal, bag).blocked == [1, 2]
    (view,) = journal.read(bags, str(bag))
    assert (view.blocked, view.waiting) == (2, 1)


def test_a_bag_that_runs_after_others_begins_blocked(journal: Journal) -> None:
    parent = add_bag(journal, SPEC, tasks("p"), 1.0)
    spec = BagSpec(name="b", cwd="/", output="/", environment={}, after=(parent,))
    bag = load_bag(journal, add_bag(journal, spec, tasks("a", "b"), 2.0, gated=True))
    assert (bag.blocked, bag.awaits) == ([0, 1], {parent})
    (view,) = journal.read(bags, str(bag.id))
    assert (view.blocked, view.waiting) == (2, 0)


@pytest.mark.parametrize("by_key", [True, False])
@pytest.mark.parametrize("few", [True, False])
def test_what_is_never_published_goes_and_its_number_is_not_used_with_its_tasks(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, by_key: bool, few: bool
) -> None:
    monkeypatch.setattr("adaptor.journal.adding._FEW", 2 if few else 1)
    bag = open_bag(journal)
    add(journal, 0, "key", tasks("a", "b"), now=100.0)
    with journal.transaction() as db:
        left = forget_unpublished(db, "key") if by_key else forget_stale(db, 150.0)
    gone = by_key and few
    assert (left, rows(journal)) == ((0, 0) if gone else (1, 2))
    with pytest.raises(UsageError, match="was not published"):
        add(journal, 0, "key", tasks("d"), 2)
    assert journal.read(opened, "key") is None
    new = open_bag(journal, "new")
    assert new == (bag if gone else bag + 1)
    compact(journal)
    assert rows(journal) == 0
    publish(journal, "new")
    assert journal.read(bags, "all")[0].tasks == 0


def test_a_number_before_another_bag_stays_unused(journal: Journal) -> None:
    first, second = open_bag(journal, "first"), open_bag(journal, "second")
    with journal.transaction() as db:
        assert forget_unpublished(db, "first") == 0
    assert open_bag(journal, "third") == second + 1 == first + 2


@pytest.mark.parametrize("stale", [tasks("a"), []])
def test_tasks_that_come_keep_a_bag_and_one_without_any_goes_too(
    journal: Journal, stale: Sequence[TaskInput]
) -> None:
    open_bag(journal, now=100.0)
    if stale:
        add(journal, 0, "key", stale, now=200.0)
    with journal.transaction() as db:
        assert forget_stale(db, 150.0) == (0 if stale else 1)


def test_only_an_open_bag_takes_tasks(journal: Journal) -> None:
    bag = add_bag(journal, SPEC, tasks("a"), 1.0)
    with pytest.raises(UsageError, match=f"bag {bag} is closed and takes no more tasks"):
        add(journal, bag, "key", tasks("b"))
