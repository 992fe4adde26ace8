"""The broker: eager scheduling, retries, losses, replicas, fair shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor.api import TaskInput
from adaptor.guard_rails import EarlySignal
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey, Ending, Leaving
from adaptor.resources import OwnNeeds
from adaptor.scheduling.changes import AttemptEnd
from tests.scheduling.broker_world import TERMS, World


def outcomes(world: World, bag: int) -> list[tuple[int, int, str | None]]:
    rows = world.journal.connection.execute(
        "SELECT task, number, outcome FROM attempt WHERE bag = ? ORDER BY task, number", (bag,)
    )
    return [(task, number, outcome) for task, number, outcome in rows]


def charged(world: World, bag: int) -> list[int]:
    rows = world.journal.connection.execute("SELECT charged FROM task WHERE bag = ? ORDER BY number", (bag,))
    return [count for (count,) in rows]


def test_a_worker_gets_as_many_tasks_as_it_has_slots(world: World) -> None:
    world.submit(5)
    player = world.join("w", processors=3)
    assert sorted(key.task for key in player.running) == [0, 1, 2]


def test_a_bag_that_comes_later_is_offered_to_workers_that_have_room(world: World) -> None:
    player = world.join("w", processors=2)
    world.submit(2)
    assert sorted(key.task for key in player.running) == [0, 1]


def test_tasks_that_take_more_processors_take_more_of_the_worker(world: World) -> None:
    world.submit(5, cpus=2)
    player = world.join("w", processors=5)
    assert len(player.running) == 2


def test_a_finished_task_is_recorded_and_the_next_one_started(world: World) -> None:
    bag = world.submit(2)
    player = world.join("w")
    world.finish(player)
    assert world.states(bag) == ["done", "leased"]
    assert not player.unacknowledged, "the worker need not send it again"
    world.finish(player)
    assert world.states(bag) == ["done", "done"]
    assert not world.broker.busy


@pytest.mark.parametrize("why", [Leaving.SIGNAL, Leaving.TIME_UP, Leaving.TOLD, Leaving.ALONE])
def test_a_worker_that_leaves_charges_no_retry(world: World, why: Leaving) -> None:
    bag = world.submit(2, retries=0)
    world.leave(world.join("w", processors=2), why)
    assert world.states(bag) == ["waiting", "waiting"]
    assert charged(world, bag) == [0, 0]


def test_a_lost_worker_charges_no_retry_and_its_tasks_go_last(world: World) -> None:
    bag = world.submit(3, retries=0)
    world.join("w")
    world.now += 60
    (silent,) = world.broker.silent(world.now - 30)
    world.broker.lost(silent.id, AttemptOutcome.LOST, silent.seen, world.now)
    world.commit()
    assert world.states(bag) == ["waiting"] * 3
    assert [key.task for key in world.join("v").running] == [1]
    assert outcomes(world, bag)[0] == (0, 1, "lost")


def test_the_scheduler_says_what_the_losses_of_a_pilot_were(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w")
    world.leave(player, Leaving.SIGNAL)
    assert outcomes(world, bag) == [(0, 1, "lost")]
    world.journal.name_losses(player.pilot, AttemptOutcome.PREEMPTED)
    assert outcomes(world, bag) == [(0, 1, "preempted")]


def test_a_task_cut_by_the_walltime_gets_more_time_next(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w", time_left=70)
    world.now += 65
    world.leave(player, Leaving.TIME_UP)
    assert outcomes(world, bag) == [(0, 1, "walltime")]
    (demand,) = world.broker.demands("site")
    assert demand.runtime >= 2 * 60
    assert not world.join("short", time_left=100).running, "it would only be cut again"
    assert world.join("long", time_left=1000).running


def test_a_task_that_had_all_the_time_there_is_fails_with_an_explanation(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w", time_left=3630)
    world.now += 3600
    world.leave(player, Leaving.TIME_UP)
    assert world.states(bag) == ["failed"]
    (error,) = world.journal.connection.execute("SELECT error FROM task").fetchone()
    assert error.startswith("too long: raise max_tr or split the task; ")
    assert "the 1h that one request can give" in error


def test_replicas_run_only_when_nothing_waits_and_the_first_result_wins(world: World) -> None:
    bag = world.submit(3)
    slow = world.join("slow")
    world.report(slow)
    fast = world.join("fast")
    world.finish(fast, took=10)
    assert len(fast.running) == 1
    assert next(iter(fast.running)).attempt == 1, "a task waited: no replica yet"
    world.finish(fast, took=10)
    (replica,) = fast.running
    assert replica == AttemptKey(bag, next(iter(slow.running)).task, 2)
    world.finish(fast, took=5)
    assert world.states(bag) == ["done"] * 3
    assert not slow.running, "the losing attempt is ended"
    world.report(slow)
    assert outcomes(world, bag) == [(0, 1, "superseded"), (0, 2, "done"), (1, 1, "done"), (2, 1, "done")]
    assert not world.broker.state.bags, "a bag that is over is forgotten"


def test_no_replica_of_a_task_that_has_not_run_for_long(world: World) -> None:
    world.submit(2)
    world.join("slow")
    fast = world.join("fast")
    world.finish(fast, took=10)
    world.now -= 5
    world.report(fast)
    assert not fast.running


def test_a_bag_can_refuse_replicas(world: World) -> None:
    world.submit(2, replicas=0)
    world.join("slow")
    fast = world.join("fast")
    world.finish(fast, took=10)
    world.now += 100
    world.report(fast)
    assert not fast.running


def test_short_tasks_are_leased_ahead_but_never_all_to_one_worker(world: World) -> None:
    world.submit(400)
    player = world.join("w", processors=2)
    assert not player.queued, "nothing is known yet of how long they take"
    world.finish(player, took=0.01)
    world.report(player)
    assert 10 <= len(player.queued) <= 200


def test_leases_held_in_reserve_are_called_back_for_an_idle_worker(world: World) -> None:
    world.submit(40)
    hoarder = world.join("hoarder")
    world.finish(hoarder, took=0.01)
    reserve = len(hoarder.queued)
    assert reserve > 1
    idle = world.join("idle")
    while idle.running:
        world.finish(idle, took=0.01)
    world.report(hoarder)
    world.report(idle)
    assert len(hoarder.queued) < reserve
    assert idle.running


def test_two_bags_share_the_slots_of_a_site_fairly(world: World) -> None:
    first, second = world.submit(10), world.submit(10)
    player = world.join("w", processors=6)
    held = [key.bag for key in player.running]
    assert held.count(first) == held.count(second) == 3


def test_a_bag_of_wide_tasks_is_not_starved_by_one_of_narrow_tasks(world: World) -> None:
    narrow = world.submit(100)
    player = world.join("w", processors=4)
    wide = world.submit(1, cpus=4)
    for _ in range(20):
        if any(key.bag == wide for key in player.running):
            break
        world.finish(player, next(key for key in player.running if key.bag == narrow), took=30)
    assert any(key.bag == wide for key in player.running)


def test_a_bag_only_runs_at_its_own_sites(tmp_path: Path) -> None:
    world = World(tmp_path, ("here", "there"))
    bag = world.submit(2, sites=("there",))
    assert not world.join("w", site="here").running
    assert world.join("v", site="there").running
    assert not world.broker.demands("here")
    assert world.states(bag).count("leased") == 1
    world.close()


def test_memory_limits_how_many_tasks_run_beside_each_other(world: World) -> None:
    world.submit(4, memory=600 << 20)
    player = world.join("w", processors=4)
    assert len(player.running) == 1


def test_cancel_ends_waiting_and_running_tasks(world: World) -> None:
    bag = world.submit(3)
    player = world.join("w")
    assert world.broker.cancel(bag) == 3
    world.commit()
    assert world.written.by_user == {bag: "cancelled"}
    world.report(player)
    assert world.states(bag) == ["cancelled"] * 3
    assert outcomes(world, bag) == [(0, 1, "cancelled")]
    assert not player.running
    assert not world.broker.state.bags


def test_tasks_of_which_enough_is_done_end_as_done(world: World) -> None:
    """Such as workers of a program that has ended: no failure, and their runtimes say nothing."""
    bag = world.submit(3)
    player = world.join("w")
    assert world.broker.cancel(bag, enough=True) == 3
    world.commit()
    assert not world.written.by_user
    world.report(player)
    assert world.states(bag) == ["done"] * 3
    assert outcomes(world, bag) == [(0, 1, "superseded")]
    assert not world.broker.state.bags


def test_retry_puts_failed_and_cancelled_tasks_back_with_fresh_retries(world: World) -> None:
    from adaptor.journal.recovery import load_bag

    bag = world.submit(2, retries=0)
    player = world.join("w")
    world.finish(player, exit_code=1)
    world.finish(player)
    assert world.states(bag) == ["failed", "done"]
    assert world.broker.retry(load_bag(world.journal, bag), world.now) == 1
    world.commit()
    world.report(player)
    world.finish(player)
    assert world.states(bag) == ["done", "done"]


def test_memory_of_a_retry_replaces_what_a_failure_had_added(world: World) -> None:
    from adaptor.journal.recovery import load_bag

    bag = world.submit(1)
    world.broker.cancel(bag)
    world.commit()
    with world.journal.transaction() as db:
        db.execute("UPDATE task SET memory = ? WHERE bag = ?", (4 << 30, bag))
    wanted = OwnNeeds(memory=2 << 30)
    assert load_bag(world.journal, bag).sizes.of(0).memory == 4 << 30
    assert world.broker.retry(load_bag(world.journal, bag), world.now, needs=wanted) == 1
    world.commit()
    assert load_bag(world.journal, bag).sizes.of(0).memory == 2 << 30


def test_after_a_restart_tasks_stay_with_workers_that_still_run_them(world: World) -> None:
    bag = world.submit(3)
    player = world.join("w", processors=2)
    world.restart()
    other = world.join("v", processors=3)
    assert [key.task for key in other.running] == [2], "tasks 0 and 1 are still with the first worker"
    world.report(player)  # asked to say Hello, it does
    world.finish(player)
    world.finish(player)
    world.finish(other)
    assert world.states(bag) == ["done"] * 3
    assert all(number == 1 for _, number, _ in outcomes(world, bag)), "nothing ran twice"


def test_results_that_were_on_their_way_when_the_daemon_died_count_once(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w")
    world.now += 3
    player.end(next(iter(player.running)), Ending.EXITED, world.now, exit_code=0)
    world.restart()
    world.report(player)
    world.report(player)
    assert outcomes(world, bag) == [(0, 1, "done")]
    assert world.states(bag) == ["done"]


def test_leases_that_never_arrived_go_back_into_the_queue(world: World) -> None:
    bag = world.submit(2)
    world.lost_orders = True
    player = world.join("w", processors=2)
    world.lost_orders = False
    assert not player.running
    assert world.states(bag) == ["leased", "leased"]
    world.now += 20
    world.submit(1)  # something that it does get, so that its heartbeat speaks of one lease
    world.report(player)
    world.report(player, heartbeat=True)
    world.report(player)
    world.run_to_the_end()
    assert world.states(bag) == ["done", "done"]


def test_results_left_behind_in_a_file_are_taken_in(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w")
    world.now += 3
    player.end(next(iter(player.running)), Ending.EXITED, world.now, exit_code=0)
    world.broker.left_behind(player.pilot, "site", list(player.unacknowledged.values()), world.now)
    world.commit()
    assert world.states(bag) == ["done"]


def test_a_worker_whose_time_was_up_while_no_daemon_listened_has_cut_its_tasks(world: World) -> None:
    """They count as cut, so that the next pilot lasts longer; nothing is suspected."""
    bag = world.submit(1)
    player = world.join("w")
    world.now += 300
    player.end(next(iter(player.running)), Ending.ENDED, world.now)
    left = list(player.unacknowledged.values())
    world.broker.left_behind(player.pilot, "site", left, world.now, time_up=True)
    (ended,) = [each for each in world.broker.drain()[0].attempts if isinstance(each, AttemptEnd)]
    assert (ended.outcome, ended.suspect) == (AttemptOutcome.WALLTIME, False)
    assert world.broker.state.learner(bag, "site").seen.not_enough >= 300
    assert not world.broker.state.bags[bag].losses.of(0)


def test_an_attempt_that_was_given_up_and_still_runs_is_taken_up_again(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w")
    world.broker.lost(player.id, AttemptOutcome.LOST, world.now, world.now)
    world.commit()
    assert world.states(bag) == ["waiting"]
    world.report(player)
    assert world.states(bag) == ["leased"]
    world.finish(player)
    assert outcomes(world, bag) == [(0, 1, "done")]


def test_a_late_result_of_a_task_that_has_ended_is_superseded(world: World) -> None:
    bag = world.submit(1)
    slow = world.join("slow")
    world.broker.lost(slow.id, AttemptOutcome.LOST, world.now, world.now)
    world.commit()
    second = world.submit(1)  # keeps the broker busy
    fast = world.join("fast")
    world.finish(fast)
    world.finish(slow) if slow.running else None
    world.run_to_the_end()
    done = [row for row in outcomes(world, bag) if row[2] == "done"]
    assert len(done) == 1
    assert world.states(second) == ["done"]


MIXED = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0)


@pytest.mark.parametrize(
    ("even_odds", "tasks", "starts"),
    [(True, 30, True), (False, 30, False), (True, len(MIXED) + 2, False)],
    ids=["more wait than run", "the paper's rule", "as many run as wait"],
)
def test_at_even_odds_a_task_starts_that_may_be_cut(
    world: World, even_odds: bool, tasks: int, starts: bool
) -> None:
    world.broker.state.sites["site"] = msgspec.structs.replace(TERMS, even_odds=even_odds)
    bag = world.submit(tasks)
    player = world.join("long")
    for took in MIXED:
        world.finish(player, took=took)
    short = world.join("short", time_left=70)
    assert bool(short.running) is starts
    if starts:
        (key,) = short.running
        world.now += 65
        world.leave(short, Leaving.TIME_UP)
        (other,) = world.join("again", time_left=70).running
        assert other.task != key.task, "it would only be cut again"
        (again,) = world.join("last").running
        assert (again.task, again.attempt) == (key.task, key.attempt + 1)
        assert world.state(bag, key.task) is TaskState.LEASED


@pytest.mark.parametrize(
    ("options", "starts"),
    [({}, True), ({"time": 45.0}, False)],
    ids=["unknown runtimes", "known ones"],
)
def test_with_a_budget_alone_a_task_starts_at_even_odds_until_the_end(
    world: World, options: dict[str, Any], starts: bool
) -> None:
    world.broker.state.sites["site"] = msgspec.structs.replace(TERMS, even_odds=True)
    bag = world.submit(len(MIXED) + 2, **options)
    player = world.join("long")
    for took in MIXED:
        world.finish(player, took=took)
    world.broker.state.alone.add(bag)
    world.broker.own_pilot(99, bag)
    assert bool(world.join("short", time_left=70, pilot=99).running) is starts


def test_a_task_that_gets_a_signal_before_its_end_starts_only_where_the_longest_fits(world: World) -> None:
    world.broker.state.sites["site"] = msgspec.structs.replace(TERMS, even_odds=True)
    world.submit(30, signal=EarlySignal("SIGUSR1", 1.0))
    player = world.join("long")
    for took in MIXED:
        world.finish(player, took=took)
    assert not world.join("short", time_left=70).running


def test_a_worker_whose_pilot_ends_too_soon_for_every_waiting_task_lacks_time(world: World) -> None:
    world.submit(9)
    first = world.join("first")
    world.join("short", time_left=20.0)
    assert not world.broker.lacks_time("short", world.now), "nothing is known of the tasks"
    world.now += 50.0
    world.finish(first, took=50.0)
    world.join("as short", time_left=20.0)
    world.join("long", time_left=500.0)
    assert world.broker.lacks_time("as short", world.now)
    assert not world.broker.lacks_time("long", world.now), "it runs a task"
    assert not world.broker.lacks_time("unknown", world.now)


@pytest.mark.parametrize(
    ("options", "own"), [({"time": 50.0}, None), ({}, 50.0)], ids=["of the bag", "of each task"]
)
def test_a_worker_lacks_time_for_tasks_that_take_as_long_as_their_user_says(
    world: World, options: dict[str, Any], own: float | None
) -> None:
    bag = world.open(**options)
    world.append(bag, "a", [TaskInput(command="x", needs=OwnNeeds(time=own))] * 9)
    world.join("short", time_left=20.0)
    assert not world.broker.lacks_time("short", world.now), "the next tasks of the open bag may be shorter"
    world.broker.close(bag)
    assert world.broker.lacks_time("short", world.now)
    world.submit(1)
    assert not world.broker.lacks_time("short", world.now), "nothing is known of that one"


def test_a_worker_waits_for_an_open_bag_whose_next_tasks_may_be_short(world: World) -> None:
    world.submit(9)
    first = world.join("first")
    world.now += 50.0
    world.finish(first, took=50.0)
    world.open()
    world.join("short", time_left=20.0)
    assert not world.broker.lacks_time("short", world.now)


def test_a_worker_waits_while_no_task_does(world: World) -> None:
    world.submit(2)
    first = world.join("first")
    world.now += 50.0
    world.finish(first, took=50.0)
    world.join("short", time_left=20.0)
    assert not world.broker.lacks_time("short", world.now), "a task that fails is short"


def test_a_worker_lacks_work_where_no_task_waits_or_is_expected(world: World) -> None:
    bag = world.submit(1, replicas=0)
    busy = world.join("busy")
    idle = world.join("idle")
    assert busy.running
    assert not idle.running
    assert world.broker.lacks_work("idle")
    assert not world.broker.lacks_work("busy"), "it runs a task"
    assert not world.broker.lacks_work("unknown")
    world.submit(1, after=[bag])
    assert not world.broker.lacks_work("idle"), "a blocked task will wait when the first has ended"


def test_a_worker_waits_for_the_next_tasks_of_an_open_bag(world: World) -> None:
    bag = world.open()
    world.join("idle")
    assert not world.broker.lacks_work("idle")
    world.broker.close(bag)
    assert world.broker.lacks_work("idle")


def test_tasks_that_wait_for_the_first_ones_of_their_bag_keep_workers(world: World) -> None:
    world.submit(9, canary=1)
    world.join("busy")
    idle = world.join("idle")
    assert not idle.running
    assert not world.broker.lacks_work("idle")


def test_after_a_restart_what_a_worker_holds_in_reserve_does_not_count_as_running(world: World) -> None:
    bag = world.submit(20)
    player = world.join("w", processors=2)
    for _ in range(4):  # short tasks: it gets some in reserve
        world.finish(player, took=0.1)
    held = len(world.broker.state.workers["w"].held)
    assert held > 2
    assert len(world.broker.started(bag)) == 2
    world.restart()
    assert len(world.broker.state.workers["w"].held) == held
    assert len(world.broker.started(bag)) == 2
    world.greet(player)
    assert len(world.broker.started(bag)) == 2
