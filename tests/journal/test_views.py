"""Bags, tasks and pilots as a user sees them."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.journal.views import Live, bags, latest, left_out, pilots, tasks
from adaptor.model import PilotState
from tests.journal.bags import add_bag
from tests.scheduling.broker_world import Player, World

MANY = 1000
"""More than the parameters that a statement may have in SQLite before its version 3.32."""


def limit_parameters(db: sqlite3.Connection) -> None:
    """Make this SQLite refuse what an old one refuses, where Python can."""
    if sys.version_info >= (3, 11):
        db.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)


def test_a_bag_in_numbers(world: World) -> None:
    bag = world.submit(4, retries=1)
    player = world.join("w", processors=2)
    world.finish(player, took=3)
    world.finish(player, exit_code=1, took=3)
    (view,) = bags(world.journal.connection, "last")
    assert (view.id, view.state, view.tasks, view.done, view.retried) == (bag, "running", 4, 1, 1)
    assert view.waiting + view.running == 3
    assert view.mean_runtime == 3.0


def test_a_bag_names_the_bags_that_it_waits_for_until_they_have_ended(world: World) -> None:
    first, second = world.submit(1), world.submit(1)
    spec = BagSpec(name="b", cwd="/", output="/", environment={}, after=(first,), after_any=(second, first))
    last = add_bag(world.journal, spec, [api.TaskInput("true")] * 3, world.now, gated=True)
    world.cpus[last] = 1
    world.restart()
    player = world.join("w")

    def awaits() -> list[int]:
        (view,) = bags(world.journal.connection, str(last))
        assert view.waiting + view.running + view.blocked == 3
        return view.awaits

    assert awaits() == [first, second]
    world.finish(player)
    assert awaits() == [second]
    world.finish(player)
    assert awaits() == []


@pytest.mark.parametrize(("exit_code", "state"), [(0, "done"), (1, "failed")])
def test_the_state_of_a_bag_that_has_ended(world: World, exit_code: int, state: str) -> None:
    world.submit(1, retries=0)
    world.finish(world.join("w"), exit_code=exit_code)
    (view,) = bags(world.journal.connection, "all")
    assert view.state == state
    assert view.ended is not None


def test_a_cancelled_bag(world: World) -> None:
    bag = world.submit(2)
    world.broker.cancel(bag)
    world.commit()
    (view,) = bags(world.journal.connection, "all")
    assert (view.state, view.cancelled, view.mean_runtime) == ("cancelled", 2, None)


def test_bags_by_selector_however_many_there_are(world: World) -> None:
    world.submit(1)
    with world.journal.transaction() as db:
        db.executemany(
            "INSERT INTO bag (id, spec, name, tasks, submitted, waiting)"
            " SELECT ?, spec, name, tasks, submitted, waiting FROM bag WHERE id = 1",
            ((bag,) for bag in range(2, MANY + 1)),
        )
    db = world.journal.connection
    limit_parameters(db)
    assert len(bags(db, "all")) == MANY
    assert [view.id for view in bags(db, f"3,7-9,{MANY}")] == [3, 7, 8, 9, MANY]


def test_of_many_bags_those_that_run_are_seen_first(world: World) -> None:
    running, failing = world.submit(1), world.submit(2, retries=0)
    player = world.join("w", processors=2)
    waiting = [world.submit(1) for _ in range(6)]
    world.finish(player, exit_code=1)
    runs(world, player, world.now)
    db = world.journal.connection
    seen = latest(db, api.GetLatestBags(running=3, ended=1))
    (ended,) = [bag.id for bag in seen if bag.ended is not None]
    going = [bag for bag in seen if bag.ended is None]
    assert ended == running
    assert [bag.id for bag in going if bag.running] == [failing, waiting[0]]
    assert [bag.id for bag in going if not bag.running] == waiting[-1:]
    assert left_out(db, seen) == api.BagCounts(running=0, waiting=4, ended=0, failed=0)
    assert left_out(db, []) == api.BagCounts(running=2, waiting=5, ended=1, failed=1)


def test_without_a_daemon_no_more_tasks_run_than_the_pilots_have_processors_for(world: World) -> None:
    """Workers hold tasks in reserve: 3,210 of 12 processors seemed to run while no daemon did."""
    bag = world.submit(40)
    player = world.join("w", processors=8)
    runs(world, player, world.now)
    world.journal.note_freed(player.pilot, 6, world.now)  # of eight tasks that it holds, two can run
    (view,) = bags(world.journal.connection, str(bag))
    assert (view.running, view.waiting) == (2, 38)
    (view,) = bags(world.journal.connection, str(bag), Live())
    assert (view.running, view.waiting) == (8, 32)


def test_tasks_by_state_and_page(world: World) -> None:
    bag = world.submit(5)
    player = world.join("w")
    world.finish(player)
    db = world.journal.connection
    done = tasks(db, api.GetTasks(bag, states=["done"]))
    assert [(task.task, task.exit_code, task.attempts) for task in done] == [(0, 0, 1)]
    page = tasks(db, api.GetTasks(bag, after=1, limit=2))
    assert [task.task for task in page] == [2, 3]
    few = tasks(db, api.GetTasks(bag, states=["done", "waiting"], numbers=[9, 4, 0]))
    assert [task.task for task in few] == [0, 4]
    limit_parameters(db)
    assert len(tasks(db, api.GetTasks(bag, numbers=list(range(MANY))))) == 5


def test_a_task_counts_as_tried_when_it_started(world: World) -> None:
    """What a worker held in reserve and gave back was no try."""
    player = world.join("w", processors=2)
    bag = world.submit(20)
    for _ in range(4):
        world.finish(player, took=0.1)  # by now the worker holds a reserve
    assert player.queued
    world.broker.pause(bag)
    world.commit()
    world.report(player)
    assert not player.queued
    world.broker.resume(bag, world.now)
    world.commit()
    world.report(player)
    while player.running:
        world.finish(player, took=0.1)
    told = tasks(world.journal.connection, api.GetTasks(bag))
    assert [(task.state, task.attempts - task.replicas) for task in told] == [("done", 1)] * 20
    assert max(task.attempt for task in told) == 2


def test_a_task_that_was_tried_again_shows_its_last_attempt(world: World, tmp_path: Path) -> None:
    bag = world.submit(1, retries=1)
    player = world.join("w")
    world.finish(player, exit_code=7)
    world.finish(player, exit_code=0)
    (task,) = tasks(world.journal.connection, api.GetTasks(bag))
    assert (task.state, task.attempts, task.retries, task.exit_code) == ("done", 2, 1, 0)


def test_a_replica_is_told_from_a_task_that_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    world = World(tmp_path / "two", ("fast", "slow"))
    bag = world.submit(6, retries=0)
    slow = world.join("slow", site="slow")
    world.finish(slow, took=100)
    world.report(slow)
    (late,) = slow.running
    fast = world.join("fast", site="fast")
    for _ in range(3):
        world.finish(fast, took=10)
    db = world.journal.connection
    shown = {task.task: task for task in tasks(db, api.GetTasks(bag))}
    assert (shown[late.task].attempts, shown[late.task].replicas) == (2, 1)
    world.finish(fast, exit_code=1, took=10)
    world.report(slow)
    ended = {task.task: task for task in tasks(db, api.GetTasks(bag))}[late.task]
    assert (ended.state, ended.attempts, ended.replicas, ended.retries) == ("failed", 2, 1, 0)
    assert {task.replicas for task in shown.values() if task.task != late.task} == {0}
    world.close()


def runs(world: World, player: Player, started: float, ended: float | None = None) -> None:
    state = PilotState.RUNNING if ended is None else PilotState.COMPLETED
    world.journal.update_pilot(
        player.pilot, state=state, job="1", started=started, ended=ended, end_reason=""
    )


def test_a_pilot_that_runs_has_held_its_processors_until_now(world: World) -> None:
    world.submit(1, cpus=2)
    player = world.join("w", processors=3)
    begin = world.now
    runs(world, player, begin)
    world.finish(player, took=10)
    (record,) = pilots(world.journal.connection, "site = ?", ("site",), begin + 30)
    assert (record.used, record.wasted) == (pytest.approx(2 * 10), pytest.approx(3 * 30 - 20))


def test_processors_that_were_given_back_are_not_held(world: World) -> None:
    player = world.join("w", processors=4)
    runs(world, player, world.now, world.now + 100)
    world.journal.note_freed(player.pilot, 3, world.now + 20)
    (record,) = pilots(world.journal.connection, "state = 'completed'", (), world.now + 1e6)
    assert (record.used, record.wasted) == (0, pytest.approx(100 + 3 * 20))


def test_only_the_chosen_pilots_however_many_there_are(world: World) -> None:
    player = world.join("w")
    with world.journal.transaction() as db:
        db.executemany(
            "INSERT INTO pilot (site, tag, state, p, tr, submitted, reason)"
            " VALUES ('there', ?, 'completed', 1, 1, 0, '')",
            ((str(number),) for number in range(MANY)),
        )
    db = world.journal.connection
    limit_parameters(db)
    assert len(pilots(db, "site = ?", ("there",), world.now)) == MANY
    assert [record.id for record in pilots(db, "site = ?", ("site",), world.now)] == [player.pilot]
