"""Tasks that a bag need not run because earlier bags have them."""

from __future__ import annotations

import pytest

from adaptor.api import TakenOver, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.batch_script import BatchScript, job_number
from adaptor.errors import UsageError
from adaptor.journal.resuming import left_to_run
from adaptor.journal.views import ScriptOutputs
from tests.scheduling.broker_world import World


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


def test_tasks_that_are_left_run_after_the_same_tasks_as_before(world: World) -> None:
    world.submit(1)
    world.finish(world.join("w"))
    db = world.journal.connection
    tasks = [*inputs(0, 1, 2), TaskInput("last", after=(1,), after_any=(2,))]
    left, _ = left_to_run(db, spec(), tasks)
    assert [(task.command, task.after, task.after_any) for task in left[2:]] == [("last", (0,), (1,))]
    with pytest.raises(
        UsageError, match=r"task 2: after: an earlier bag has task 'first': leave --resume out"
    ):
        left_to_run(db, spec(), [TaskInput("task 0", id="first"), TaskInput("a"), TaskInput("b", after=(0,))])


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
