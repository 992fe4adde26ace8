"""Tasks that come before their bag, and those a bag need not run because earlier ones have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.api import TakenOver, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.batch_script import BatchScript, job_number
from adaptor.errors import UsageError
from adaptor.journal.forgetting import forget_some
from adaptor.journal.journal import Journal
from adaptor.journal.recovery import load_bag
from adaptor.journal.staging import forget_staged, forget_stale, left_to_run, staged
from adaptor.journal.views import ScriptOutputs, bags
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey
from tests.journal.test_bag_rows import SPEC, tasks
from tests.scheduling.broker_world import World


def rows(journal: Journal) -> int:
    return int(journal.connection.execute("SELECT COUNT(*) FROM task").fetchone()[0])


def compact(journal: Journal) -> None:
    more = True
    while more:
        with journal.transaction() as db:
            more = forget_some(db, 0.0)


def test_parts_that_came_are_the_tasks_of_the_bag(journal: Journal, tmp_path: Path) -> None:
    assert journal.stage("key", 0, tasks("a", "b"), 1.0) == 2
    assert journal.read(bags, "all") == []
    journal.close()
    again = Journal(tmp_path)  # the daemon was killed
    assert again.stage("key", 2, tasks("c"), 2.0) == 3
    came = again.read(staged, "key")
    assert came is not None
    bag = again.add_bag(SPEC, came, 3.0, key="key")
    assert bag == came.bag
    assert [task.command for task in again.inputs([AttemptKey(bag, n, 1) for n in range(3)])] == [
        "a",
        "b",
        "c",
    ]
    assert again.bag_spec(bag).output == f"/out/{bag}"
    assert load_bag(again, bag).count(TaskState.WAITING) == 3
    assert again.read(staged, "key") is None
    again.close()


def test_the_number_of_a_bag_that_comes_in_parts_is_not_taken(journal: Journal) -> None:
    journal.stage("key", 0, tasks("a", "b"), 1.0, {1, 2})
    found = journal.read(staged, "key")
    assert found is not None
    assert found.bag == 3


def test_a_part_that_is_repeated_counts_once_and_none_may_be_left_out(journal: Journal) -> None:
    journal.stage("key", 0, tasks("a", "b"), 1.0)
    assert journal.stage("key", 0, tasks("a", "b"), 1.0) == 2
    with pytest.raises(UsageError, match="are forgotten"):
        journal.stage("key", 3, tasks("d"), 1.0)
    with pytest.raises(UsageError, match="are forgotten"):
        journal.stage("other", 1, tasks("d"), 1.0)
    assert rows(journal) == 2


def test_bags_that_come_at_the_same_time_have_their_own_tasks(journal: Journal) -> None:
    for part in range(3):
        journal.stage("one", part, tasks(f"one {part}"), 1.0)
        journal.stage("two", part, tasks(f"two {part}"), 1.0)
    small = journal.add_bag(SPEC, tasks("x"), 1.0)
    both = [journal.read(staged, key) for key in ("one", "two")]
    numbers = [journal.add_bag(SPEC, each, 2.0) for each in both if each is not None]
    assert len({small, *numbers}) == 3
    first = [journal.inputs([AttemptKey(bag, 0, 1)])[0].command for bag in numbers]
    assert first == ["one 0", "two 0"]


def test_ids_are_unique_over_all_parts_and_links_come_in_one(journal: Journal) -> None:
    journal.stage("key", 0, [TaskInput("a", id="x")], 1.0)
    with pytest.raises(UsageError, match="that of task 0 already"):
        journal.stage("key", 1, [TaskInput("b", id="x")], 1.0)
    with pytest.raises(UsageError, match="submitted together"):
        journal.stage("key", 1, [TaskInput("b", after=("x",))], 1.0)
    assert rows(journal) == 1


def test_a_bag_that_runs_after_others_begins_blocked(journal: Journal) -> None:
    parent = journal.add_bag(SPEC, tasks("p"), 1.0)
    journal.stage("key", 0, tasks("a", "b"), 1.0)
    spec = BagSpec(name="b", cwd="/", output="/", environment={}, after=(parent,))
    came = journal.read(staged, "key")
    assert came is not None
    bag = load_bag(journal, journal.add_bag(spec, came, 2.0, gated=True))
    assert (bag.blocked, bag.awaits) == ([0, 1], {parent})
    (view,) = journal.read(bags, str(bag.id))
    assert (view.blocked, view.waiting) == (2, 0)


@pytest.mark.parametrize("by_key", [True, False])
def test_what_is_never_submitted_goes_and_its_number_stays_unused(journal: Journal, by_key: bool) -> None:
    journal.stage("key", 0, tasks("a", "b"), 100.0)
    journal.stage("new", 0, tasks("c"), 200.0)
    with journal.transaction() as db:
        assert (forget_staged(db, "key") if by_key else forget_stale(db, 150.0)) == 1
    compact(journal)
    assert rows(journal) == 1
    with pytest.raises(UsageError, match="are forgotten"):
        journal.stage("key", 2, tasks("d"), 201.0)
    assert journal.add_bag(SPEC, tasks("x"), 1.0) == 3


def spec(name: str = "b", cwd: str = "/", script: BatchScript | None = None) -> BagSpec:
    return BagSpec(name=name, cwd=cwd, output="/o", environment={}, script=script)


def inputs(*numbers: int) -> list[TaskInput]:
    return [TaskInput(f"task {number}", "a name of its own") for number in numbers]


def test_done_and_waiting_tasks_are_left_out_and_failed_ones_are_not(world: World) -> None:
    bag = world.submit(4, retries=0)
    player = world.join("w")
    world.finish(player)
    world.finish(player, exit_code=1)
    left, taken = left_to_run(world.journal.connection, spec(), inputs(0, 1, 2, 3, 4))
    assert [task.command for task in left] == ["task 1", "task 4"]
    assert taken == [TakenOver(bag=bag, done=1, to_run=2)]


def test_a_task_is_new_as_often_as_it_is_added(world: World) -> None:
    first = world.submit(1)
    world.finish(world.join("w"))
    second = world.submit(1)
    left, taken = left_to_run(world.journal.connection, spec(), inputs(0, 0, 0))
    assert len(left) == 1
    assert taken == [TakenOver(second, 0, 1), TakenOver(first, 1, 0)]


def test_another_folder_name_script_or_variable_is_another_task(world: World) -> None:
    world.submit(1)
    db = world.journal.connection
    other = BatchScript(body=b"#!/bin/sh\n", output="/o")
    for changed in (spec(name="c"), spec(cwd="/tmp"), spec(script=other)):
        assert left_to_run(db, changed, inputs(0)) == (inputs(0), [])
    for task in (
        TaskInput("task 0", environment={"A": "1"}),
        TaskInput("task 0", cwd="/x"),
        TaskInput(["task", "0"]),
    ):
        assert left_to_run(db, spec(), [task]) == ([task], [])
    assert left_to_run(db, spec(), [TaskInput("task 0", cwd="/", environment={})])[0] == []


def test_the_files_that_a_script_names(world: World) -> None:
    plain = world.submit(1)
    assert ScriptOutputs(world.journal.connection, plain).of(3, None, None) == (None, None)
    script = BatchScript(body=b"#!/bin/sh\n", output="/o/%A_%2a-%j.%N%%", array=True)
    bag = world.submit(1, script=script)
    own = {"SLURM_ARRAY_TASK_ID": "7"}
    name = f"/o/{bag}_07-{job_number(bag, 3)}.n1%"
    assert ScriptOutputs(world.journal.connection, bag).of(3, own, "n1.cluster") == (name, name)
