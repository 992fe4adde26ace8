"""Guard rails: a mistake costs little, a pause holds, and a checkpointing task is not punished."""

from __future__ import annotations

import math
from functools import partial

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from adaptor.guard_rails import ALIKE, KNOWN_FROM, EarlySignal, MostFails, TimeLimit, canary_tries
from adaptor.model import TaskState
from adaptor.protocol.messages import Ending, Leaving, Report, Result
from adaptor.scheduling.bag import Bag, Guard
from adaptor.scheduling.guards import QUICK_REQUEUES
from adaptor.scheduling.task_needs import seconds_to_start
from tests.examples import examples
from tests.scheduling.broker_world import Player, World


def bag_of(world: World, id: int) -> Bag:
    return world.broker.state.bags[id]


def attempts(world: World, bag: int) -> int:
    found = world.journal.connection.execute("SELECT COUNT(*) FROM attempt WHERE bag = ?", (bag,))
    return int(found.fetchone()[0])


def outcomes(world: World, bag: int) -> list[tuple[int, str]]:
    rows = world.journal.connection.execute(
        "SELECT task, outcome FROM attempt WHERE bag = ? ORDER BY task, number", (bag,)
    )
    return rows.fetchall()


def fail_until_quiet(world: World, exit_code: int, took: float) -> None:
    """Whatever runs fails, until nothing runs any more."""
    while player := next((each for each in world.players.values() if each.running), None):
        world.finish(player, exit_code=exit_code, took=took)


def error_of(world: World, bag: int, task: int) -> str:
    found = world.journal.connection.execute(
        "SELECT error FROM task WHERE bag = ? AND number = ?", (bag, task)
    ).fetchone()
    return str(found[0])


# --- the canary ----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 5])
def test_ten_thousand_typos_cost_less_than_a_hundredth(world: World, workers: int) -> None:
    for number in range(workers):
        world.join(f"w{number}", processors=8)
    bag = world.submit(10_000, retries=3)
    fail_until_quiet(world, exit_code=127, took=0.01)
    assert attempts(world, bag) <= ALIKE + 8 * workers < 100
    paused = bag_of(world, bag).guard
    assert f"bag {bag} is paused: its first 10 attempts all failed alike, within 10 s each" in paused.paused
    assert f"adaptor resume {bag}" in paused.paused
    assert paused.itself
    assert paused.shown is not None
    assert not world.broker.demands("site"), "nothing is asked for"
    assert not world.broker.busy, "a daemon that was started for this bag may end"
    world.restart()
    assert bag_of(world, bag).guard == paused


@given(
    tasks=st.integers(1, 1500),
    processors=st.lists(st.integers(1, 16), min_size=1, max_size=5),
    data=st.data(),
)
@examples(12, suppress_health_check=[HealthCheck.too_slow])
def test_a_bag_that_fails_stops_at_the_square_root_and_what_runs(
    tmp_path_factory: pytest.TempPathFactory, tasks: int, processors: list[int], data: st.DataObject
) -> None:
    """However its tasks fail, and however long the workers keep that to themselves."""
    world = World(tmp_path_factory.mktemp("world"))
    for number, each in enumerate(processors):
        world.join(f"w{number}", each)
    bag = world.submit(tasks)
    tries = canary_tries(tasks) or tasks
    while players := [each for each in world.players.values() if each.running]:
        player = data.draw(st.sampled_from(players)) if len(players) > 1 else players[0]
        took = data.draw(st.sampled_from([0.1, 60.0]))
        quiet(world, player)
        world.finish(player, exit_code=data.draw(st.integers(1, 3)), took=took)
    assert attempts(world, bag) <= min(tasks, tries + sum(processors))
    world.close()


def quiet(world: World, player: Player) -> None:
    """A worker has room again, and keeps the failures to itself that have made it."""
    room = Report(free_processors=player.processors, free_memory=player.memory)
    world.broker.report(player.id, room, world.now)
    world.commit()


def test_first_attempts_that_fail_in_different_ways_are_tried_for_longer(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(10_000)
    for number in range(2 * ALIKE):
        world.finish(player, exit_code=1 + number % 2, took=0.1)
    assert not bag_of(world, bag).guard.paused


def test_one_result_is_enough_to_go_on(world: World) -> None:
    player = world.join("w", processors=2)
    bag = world.submit(100)
    world.finish(player)
    fail_until_quiet(world, exit_code=1, took=0.1)
    assert attempts(world, bag) == 100
    assert world.states(bag).count("failed") == 99


def test_resumed_without_its_canary(world: World) -> None:
    world.join("w", processors=2)
    bag = world.submit(100)
    fail_until_quiet(world, exit_code=1, took=0.1)
    assert world.broker.resume(bag, world.now)
    world.commit()
    fail_until_quiet(world, exit_code=1, took=0.1)
    assert world.states(bag) == ["failed"] * 100


@pytest.mark.parametrize("options", [{"canary": "no"}, {}])
def test_no_canary_where_it_is_not_wanted_or_the_bag_is_small(world: World, options: dict[str, str]) -> None:
    world.join("w", processors=2)
    bag = world.submit(40 if options else 19, **options)
    fail_until_quiet(world, exit_code=1, took=0.1)
    assert set(world.states(bag)) == {"failed"}


# --- max-fails and retries -----------------------------------------------------------------------


def test_so_many_failures_pause_and_resume_allows_as_many_again(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(100, max_fails=MostFails(share=0.05))
    world.finish(player)
    fail_until_quiet(world, exit_code=1, took=20.0)
    assert world.states(bag).count("failed") in (5, 6), "a worker may hold one more in reserve"
    assert "5 tasks failed (max-fails 5%)" in bag_of(world, bag).guard.paused
    for _ in range(2):
        before = world.states(bag).count("failed")
        assert world.broker.resume(bag, world.now)
        world.commit()
        world.report(player)
        fail_until_quiet(world, exit_code=1, took=20.0)
        assert world.states(bag).count("failed") - before in (5, 6)
    assert "since it was resumed" in bag_of(world, bag).guard.paused
    world.retry(bag)
    assert bag_of(world, bag).guard.excused == 0, "they are not failed any more"
    assert bag_of(world, bag).guard.paused


@pytest.mark.parametrize(
    ("result", "tries"),
    [
        ({"exit_code": 1}, 3),
        ({"exit_code": 126}, 3),
        ({"ending": Ending.NOT_STARTED, "exit_code": 126, "error": "text file busy"}, 3),
        ({"exit_code": 127}, 1),
        ({"ending": Ending.NOT_STARTED, "exit_code": 127, "error": "no such program"}, 1),
        ({"ending": Ending.NOT_STARTED, "error": "its folder cannot be entered"}, 3),
        ({"ending": Ending.TIMED_OUT, "error": "time-out after 5s"}, 3),
    ],
)
def test_what_is_tried_again(world: World, result: dict[str, object], tries: int) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(1, retries=2)
    while player.running:
        key = next(iter(player.running))
        player.end(key, Ending.EXITED, world.now)
        said = {"ending": Ending.EXITED, "started": world.now, "wall": 1.0, **result}
        player.unacknowledged[key] = Result(key, **said)  # type: ignore[arg-type]
        world.report(player)
    assert attempts(world, bag) == tries
    assert world.states(bag) == ["failed"]


def test_a_failed_task_is_not_tried_again_unless_its_user_asks_for_it(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(2)
    world.finish(player, exit_code=1)
    world.finish(player)
    assert outcomes(world, bag) == [(0, "failed"), (1, "done")]


# --- time-outs -----------------------------------------------------------------------------------


def test_a_task_out_of_time_teaches_nothing(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(3)
    world.finish(player, took=10.0)
    (key,) = player.running
    world.now += 1000.0
    player.end(key, Ending.TIMED_OUT, world.now)
    world.report(player)
    assert world.states(bag) == ["done", "failed", "leased"]
    assert world.broker.state.learner(bag, "site").estimate == pytest.approx(10.0)
    world.restart()
    assert world.broker.state.learner(bag, "site").estimate == pytest.approx(10.0)
    assert outcomes(world, bag)[:2] == [(0, "done"), (1, "time-out")]


def test_a_limit_in_parts_of_the_mean_is_told_once_enough_have_finished(world: World) -> None:
    player = world.join("w", processors=1)
    hung = world.join("hung", processors=1)
    world.submit(100, timeout=TimeLimit(part=3.0))
    told: list[tuple[str, dict[int, float]]] = []
    commit = world.commit

    def watched() -> None:
        drafts = world.broker.state.orders
        told.extend((id, draft.timeouts) for id, draft in drafts.items() if draft.timeouts)
        commit()

    world.commit = watched  # type: ignore[method-assign]
    for _ in range(KNOWN_FROM - 1):
        world.finish(player, took=10.0)
    assert not told
    world.finish(player, took=10.0)
    world.report(hung)
    world.report(hung)
    assert told == [("w", {1: pytest.approx(30.0)}), ("hung", {1: pytest.approx(30.0)})], "and once each"


def test_a_limit_in_parts_of_the_expected_time_is_known_at_once() -> None:
    assert TimeLimit(part=3.0).of(60.0, 0, 0.0) == 180.0
    assert TimeLimit(seconds=5.0).of(60.0, 0, 0.0) == 5.0
    assert TimeLimit(part=3.0).of(None, KNOWN_FROM - 1, 1e9) is None


# --- checkpoints ---------------------------------------------------------------------------------


def test_a_task_that_has_checkpointed_goes_on_at_no_charge(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(2, requeue_on=(75,))
    for _ in range(3):
        world.finish(player, exit_code=75, took=1000.0)
        world.restart()
        world.greet(player)
    assert bag_of(world, bag).progress == {0: pytest.approx(3000.0)}
    world.finish(player, took=500.0)
    assert outcomes(world, bag)[:4] == [(0, "requeued")] * 3 + [(0, "done")]
    assert bag_of(world, bag).charged == {}
    learner = world.broker.state.learner(bag, "site")
    assert (learner.seen.finished, learner.seen.longest, learner.cuts) == (1, pytest.approx(3500.0), {})
    squares = bag_of(world, bag).squares
    world.restart()
    assert world.broker.state.learner(bag, "site").seen.longest == pytest.approx(3500.0)
    assert bag_of(world, bag).squares == pytest.approx(squares) == pytest.approx(3500.0**2)


def test_a_task_of_three_times_the_longest_request_finishes(world: World) -> None:
    """It checkpoints on the signal that its pilot ends."""
    player = world.join("w", processors=1, time_left=20_000.0)
    bag = world.submit(1, requeue_on=(75,))
    for _ in range(3):
        (key,) = player.running
        world.now += 3600.0  # all that a request can give
        player.end(key, Ending.ENDED, world.now, exit_code=75)
        world.report(player)
        assert world.states(bag) == ["leased"]
    world.finish(player)
    assert outcomes(world, bag) == [(0, "requeued")] * 3 + [(0, "done")]


def test_a_task_that_only_says_so_fails_in_the_end(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(1, requeue_on=(75,))
    while player.running:
        world.finish(player, exit_code=75, took=0.1)
    assert attempts(world, bag) == QUICK_REQUEUES + 1
    assert world.states(bag) == ["failed"]
    assert "it does not get on" in error_of(world, bag, 0)


def test_what_is_left_of_a_task_is_what_a_pilot_must_hold(world: World) -> None:
    player = world.join("w", processors=1)
    bag = world.submit(3, requeue_on=(75,), time=1000.0)
    needs = partial(seconds_to_start, world.broker.state)
    whole = needs(bag_of(world, bag), "site", 0)
    world.finish(player, exit_code=75, took=400.0)
    assert needs(bag_of(world, bag), "site", 0) == pytest.approx(whole - 400.0)
    world.finish(player, exit_code=75, took=700.0)
    assert needs(bag_of(world, bag), "site", 0) == pytest.approx(1100.0 + whole - 1000.0), "half done"
    world.finish(player, exit_code=75, took=9000.0)
    assert needs(bag_of(world, bag), "site", 0) == pytest.approx(3600.0 + whole - 1000.0), "max_tr"


# --- pause, priority, max-running ----------------------------------------------------------------


def test_a_paused_bag_ends_what_runs_and_starts_nothing(world: World) -> None:
    player = world.join("w", processors=2)
    bag = world.submit(50)
    for _ in range(4):
        world.finish(player, took=0.1)  # by now the worker holds a reserve
    assert player.queued
    assert world.broker.pause(bag)
    assert not world.broker.pause(bag)
    world.commit()
    assert not player.queued, "what has not started goes back"
    world.report(player)
    assert world.broker.has_work_for("site")
    while player.running:
        world.finish(player)
    assert world.states(bag).count("done") == 6
    assert not world.broker.has_work_for("site")
    assert not world.broker.has_waiting("site")
    assert world.broker.busy
    world.restart()
    world.greet(player)
    assert not player.running
    assert world.broker.resume(bag, world.now)
    world.commit()
    assert len(player.running) == 2


def test_the_bag_with_the_highest_priority_goes_first(world: World) -> None:
    first, second = world.submit(4), world.submit(4, priority=5)
    player = world.join("w", processors=1)
    assert {key.bag for key in player.running} == {second}
    spec = bag_of(world, first).spec
    assert world.broker.change_options(first, type(spec)(**{**_fields(spec), "priority": 9}), world.now)
    world.commit()
    world.finish(player)
    assert {key.bag for key in player.running} == {first}
    (demand,) = world.broker.demands("site")
    assert demand.priority == 9


def _fields(spec: object) -> dict[str, object]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}  # type: ignore[attr-defined]


def test_no_more_than_so_many_run_and_no_more_are_asked_for(world: World) -> None:
    bag = world.submit(50, max_running=3, cpus=2)
    (demand,) = world.broker.demands("site")
    assert (demand.waiting, demand.together) == (50, 3)
    players = [world.join(f"w{number}", processors=4) for number in range(4)]
    assert sum(len(player.running) for player in players) == 3
    reserves = 0
    while running := next((player for player in players if player.running), None):
        world.finish(running, took=0.1)
        assert sum(len(player.running) for player in players) <= 3
        reserves = max(reserves, sum(len(player.queued) for player in players))
    assert world.states(bag) == ["done"] * 50
    assert 3 <= reserves <= 25, "no place is empty until the daemon answers, and the last tasks wait nowhere"


def test_what_waits_behind_others_runs_beside_them_once_there_is_room(world: World) -> None:
    """Of two places, one is at each worker; then one worker leaves, and its place is free."""
    bag = world.submit(40, max_running=2)
    leaving, staying = world.join("w1", processors=1), world.join("w2", processors=4)
    world.finish(leaving, took=0.1)
    world.report(staying)  # how long a task takes is known by now
    while leaving.running:
        world.finish(leaving, took=0.1)
    world.leave(leaving, Leaving.IDLE)
    assert (len(staying.running), len(staying.queued) > 0) == (1, True)
    for _ in range(2):  # part of what waits behind the other one goes back, and is leased again
        world.report(staying)
    assert len(staying.running) == 2
    while staying.running:
        world.finish(staying, took=0.1)
        assert len(staying.running) <= 2
    assert world.states(bag) == ["done"] * 40


def test_a_new_limit_holds_for_what_workers_have_in_reserve(world: World) -> None:
    bag = world.submit(40, max_running=1, time=0.5)
    player = world.join("w", processors=8)
    world.finish(player, took=0.01)
    assert (len(player.running), len(player.queued) > 2) == (1, True)
    spec = msgspec.structs.replace(bag_of(world, bag).spec, max_running=6)
    assert world.broker.change_options(bag, spec, world.now)
    world.commit()
    for _ in range(3):
        world.report(player)
    assert len(player.running) == 6


def test_a_place_that_becomes_free_goes_to_any_worker_at_once(world: World) -> None:
    bag = world.submit(3, max_running=1, time=600.0)
    ending, idle = world.join("w1", time_left=1000.0), world.join("w2", time_left=5000.0)
    assert (len(ending.running), len(idle.running)) == (1, 0)
    world.finish(ending, took=600.0)  # what is left of its pilot is too short for one more
    assert (len(ending.running), [key.bag for key in idle.running]) == (0, [bag])


def test_a_signal_needs_room_before_the_end(world: World) -> None:
    bag = world.submit(1, time=600.0, signal=EarlySignal("SIGUSR1", 120.0))
    (demand,) = world.broker.demands("site")
    assert demand.runtime == 720.0
    assert bag_of(world, bag).count(TaskState.WAITING) == 1


def test_the_numbers() -> None:
    assert [canary_tries(total) for total in (1, 19, 20, 100, 10_000, 10_001)] == [
        None,
        None,
        10,
        10,
        100,
        101,
    ]
    assert all((canary_tries(n) or n) <= max(ALIKE, math.sqrt(n) + 1) for n in range(20, 2000))
    assert [MostFails(share=0.05).of(total) for total in (1, 20, 21, 1000)] == [1, 1, 2, 50]
    assert MostFails(tasks=10).of(3) == 10


# --- first tasks that must succeed ----------------------------------------------------------------


def test_the_first_tasks_must_succeed_before_more_start(world: World) -> None:
    players = [world.join(f"w{number}", processors=4) for number in range(2)]
    bag = world.submit(40, canary=3)
    (demand,) = world.broker.demands("site")
    assert demand.together == 3
    for done in range(3):
        running = [player for player in players if player.running]
        assert attempts(world, bag) == 3, f"{done} are done"
        world.finish(running[0], took=0.1)
    assert sum(len(player.running) for player in players) == 8
    while running := [player for player in players if player.running]:
        world.finish(running[0], took=0.1)
    assert world.states(bag) == ["done"] * 40


def test_one_failure_among_the_first_tasks_pauses_the_bag(world: World) -> None:
    player = world.join("w", processors=4)
    bag = world.submit(40, canary=3)
    world.finish(player, took=0.1)
    fail_until_quiet(world, exit_code=1, took=0.1)
    assert attempts(world, bag) == 3
    assert "one of its first 3 tasks failed (canary 3)" in bag_of(world, bag).guard.paused
    assert world.broker.resume(bag, world.now)
    world.commit()
    assert len(player.running) == 4, "its user has looked"


def test_other_limits_hold_for_the_first_tasks_too(world: World) -> None:
    player = world.join("w", processors=8)
    bag = world.submit(40, canary=4, max_running=2)
    while player.running:
        assert len(player.running) <= 2
        world.finish(player, took=0.1)
    assert world.states(bag) == ["done"] * 40


# --- the begin -----------------------------------------------------------------------------------


def test_a_bag_starts_nothing_before_its_begin_and_goes_on_by_itself(world: World) -> None:
    world.join("w", processors=4)
    bag = world.submit(8, begin=world.now + 3600)
    guard = bag_of(world, bag).guard
    assert guard.paused.startswith(f"bag {bag} begins at ")
    assert not guard.itself, "those who watch it go on waiting"
    assert not world.players["w"].running
    assert not bag_of(world, bag).startable
    assert world.broker.busy, "the daemon stays"
    world.restart()
    world.now += 3599
    world.broker.advance(world.now)
    world.commit()
    assert not world.players["w"].running
    world.now += 1
    assert world.broker.due(world.now)
    world.broker.advance(world.now)
    world.commit()
    world.report(world.players["w"])
    assert len(world.players["w"].running) == 4
    assert bag_of(world, bag).guard == Guard(), "its canary watches as usual"


def test_its_user_starts_it_before_or_pauses_it_beyond_its_begin(world: World) -> None:
    world.join("w", processors=4)
    first, second = (world.submit(2, begin=world.now + 3600) for _ in range(2))
    assert world.broker.resume(first, world.now)
    assert bag_of(world, first).guard == Guard()
    assert world.broker.pause(second)
    assert "its user has paused it" in bag_of(world, second).guard.paused
    assert world.broker.due(world.now + 7200) == []


def test_another_begin_replaces_the_first(world: World) -> None:
    bag = world.submit(2, begin=world.now + 3600)
    later = msgspec.structs.replace(bag_of(world, bag).spec, begin=world.now + 7200)
    assert world.broker.change_options(bag, later, world.now)
    assert world.broker.due(world.now + 3600) == []
    assert [each.id for each in world.broker.due(world.now + 7200)] == [bag]
