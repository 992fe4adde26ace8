"""What the end of a task, or of a bag, means for those that wait for it."""

from __future__ import annotations

import pytest

from adaptor.api import TaskInput
from adaptor.journal.bag_rows import end_of_bag
from adaptor.journal.recovery import load_bag
from adaptor.model import TaskState
from tests.scheduling.broker_world import World


def after(*parents: int, any: tuple[int, ...] = ()) -> TaskInput:
    return TaskInput("x", after=(*parents,), after_any=(*any,))


def bag_of(world: World, *tasks: TaskInput, **options: object) -> int:
    bag = world.open(**options)
    world.append(bag, "all", tasks)
    world.broker.close(bag)
    world.commit()
    return bag


def errors(world: World, bag: int) -> list[str | None]:
    rows = world.journal.connection.execute("SELECT error FROM task WHERE bag = ? ORDER BY number", (bag,))
    return [error for (error,) in rows]


def run_all(world: World, *failing: int) -> list[int]:
    """Run what runs until nothing does; the tasks in the order of their ends."""
    ended = []
    while running := [(player, key) for player in world.players.values() for key in player.running]:
        player, key = running[0]
        world.finish(player, key, exit_code=int(key.task in failing))
        ended.append(key.task)
    return ended


def test_a_diamond_runs_in_order_and_idle_workers_get_what_becomes_ready(world: World) -> None:
    bag = bag_of(world, after(), after(0), after(0), after(1, 2))
    (demand,) = world.broker.demands("site")
    assert demand.waiting == 1, "planning asks for what is ready"
    workers = [world.join(f"w{number}") for number in range(3)]
    assert [len(worker.running) for worker in workers] == [1, 0, 0]
    world.finish(workers[0])
    assert sorted(key.task for worker in workers for key in worker.running) == [1, 2]
    assert run_all(world) == [1, 2, 3]
    assert world.states(bag) == ["done"] * 4
    assert not world.broker.busy


def test_a_failure_fails_what_runs_after_it_and_says_why(world: World) -> None:
    bag = bag_of(
        world, after(), after(0), after(1), after(any=(2,)), after(2, any=(0,)), TaskInput("x"), retries=0
    )
    world.join("w")
    assert run_all(world, 0) == [0, 5, 3]
    assert world.states(bag) == ["failed", "failed", "failed", "done", "failed", "done"]
    assert errors(world, bag)[1:5] == [
        "it runs after task 0, which failed",
        "it runs after task 0, which failed",
        None,
        "it runs after task 0, which failed",
    ]
    assert world.journal.read(end_of_bag, bag) is TaskState.FAILED


def test_a_retry_blocks_what_runs_after_it_again(world: World) -> None:
    bag = bag_of(world, after(), after(0), after(1), retries=0)
    world.join("w")
    assert run_all(world, 0) == [0]
    world.retry(bag)
    assert world.states(bag) == ["leased", "blocked", "blocked"]
    assert run_all(world) == [0, 1, 2]
    assert world.states(bag) == ["done"] * 3


def test_a_retry_of_a_task_alone_does_nothing_while_its_parent_has_failed(world: World) -> None:
    bag = bag_of(world, after(), after(0), retries=0)
    world.join("w")
    run_all(world, 0)
    assert world.broker.retry(load_bag(world.journal, bag), world.now, [1]) == 0
    assert world.states(bag) == ["failed", "failed"]


def test_a_cancelled_task_cancels_what_runs_after_it(world: World) -> None:
    bag = bag_of(world, after(), after(0), after(any=(1,)))
    world.broker.cancel(bag, [0])
    world.commit()
    assert world.states(bag) == ["cancelled", "cancelled", "waiting"]
    assert errors(world, bag)[1] == "it runs after task 0, which was cancelled"


@pytest.mark.parametrize(("failing", "end"), [((), "done"), ((1,), "failed")])
def test_a_bag_runs_after_a_bag(world: World, failing: tuple[int, ...], end: str) -> None:
    first = bag_of(world, TaskInput("x"), TaskInput("x"), retries=0)
    second = bag_of(world, TaskInput("x"), after(0), after=(first,))
    third = bag_of(world, TaskInput("x"), after_any=(first, second))
    world.join("w")
    world.restart()
    assert (world.states(second), world.states(third)) == (["blocked", "blocked"], ["blocked"])
    world.greet(world.players["w"])
    run_all(world, *failing)
    assert world.states(second) == [end, end]
    assert world.states(third) == ["done"]
    if failing:
        assert errors(world, second)[0] == f"it runs after bag {first}, which failed"


def test_a_bag_that_was_cancelled_keeps_no_other_waiting(world: World) -> None:
    first = bag_of(world, TaskInput("x"))
    gone, second = (bag_of(world, TaskInput("x"), after=(first,)) for _ in range(2))
    world.broker.cancel(gone)
    world.commit()
    world.join("w")
    run_all(world)
    assert (world.states(gone), world.states(second)) == (["cancelled"], ["done"])


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_tasks_appended_to_a_bag_after_a_spoiled_one_end_with_its_reason(
    world: World, end: str, crash: bool
) -> None:
    first = bag_of(world, TaskInput("x"), retries=0)
    second = world.open(after=(first,))
    if end == "failed":
        world.join("w")
        run_all(world, 0)
    else:
        world.broker.cancel(first)
        world.commit()
    world.append(second, "a", [TaskInput("x"), after(0), after(any=(0,))], crash=crash)
    world.join("another")
    assert world.states(second) == [end] * 3
    word = "was cancelled" if end == "cancelled" else end
    assert errors(world, second) == [f"it runs after bag {first}, which {word}"] * 3
    world.restart()
    world.append(second, "b", [TaskInput("x")])
    assert world.states(second) == [end] * 4


@pytest.mark.parametrize("restart", [False, True])
def test_a_retry_of_a_bag_lets_those_after_it_wait_for_it_again(world: World, restart: bool) -> None:
    first = bag_of(world, TaskInput("x"))
    second = world.open(after=(first,))
    third = world.open(after_any=(first,))
    world.append(second, "a", [TaskInput("x")])
    world.broker.cancel(first)
    world.commit()
    world.retry(second)
    assert world.states(second) == ["cancelled"], "a bag before it was cancelled"
    world.retry(first)
    if restart:
        world.restart()
    world.append(second, "b", [TaskInput("x")])
    world.append(third, "c", [TaskInput("x")])
    assert world.states(second) == ["cancelled", "blocked"]
    assert world.states(third) == ["blocked"]
    world.retry(second)
    world.join("w")
    run_all(world)
    assert (world.states(second), world.states(third)) == (["done"] * 2, ["done"])


def test_bags_that_are_retried_together_run_in_their_order(world: World) -> None:
    first = bag_of(world, TaskInput("x"))
    second = bag_of(world, TaskInput("x"), after=(first,))
    world.broker.cancel(first)
    world.commit()
    both = [load_bag(world.journal, bag) for bag in (first, second)]
    for bag in both:
        world.broker.retry(bag, world.now)
    world.commit()
    assert (world.states(first), world.states(second)) == (["waiting"], ["blocked"])


def test_tasks_that_are_appended_after_ended_ones(world: World) -> None:
    bag = world.open(retries=0)
    world.append(bag, "a", [TaskInput("x"), TaskInput("x", id="good")])
    world.join("w")
    run_all(world, 0)
    world.append(bag, "b", [after(0), TaskInput("x", after=("good",)), after(any=(0,))])
    assert world.states(bag)[2:] == ["failed", "leased", "leased"] or world.states(bag)[2:] == [
        "failed",
        "leased",
        "waiting",
    ]
    run_all(world)
    assert world.states(bag) == ["failed", "done", "failed", "done", "done"]


def test_a_crash_right_after_an_append_decides_on_it_later(world: World) -> None:
    bag = world.open(retries=0)
    world.append(bag, "a", [TaskInput("x")])
    world.join("w")
    run_all(world, 0)
    world.append(bag, "b", [after(0), after(any=(0,))], crash=True)
    assert world.states(bag) == ["failed", "failed", "waiting"]
