"""The tail of a bag: what is replicated, where, and at whose expense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bag_spec import BagSpec
from adaptor.guard_rails import TimeLimit
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey, Leaving
from adaptor.resources import Room
from adaptor.scheduling import leasing
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import Meter, SchedulingState
from adaptor.scheduling.tail_replication import Copy, copies, likely_cuts, stop_unpaid_copies
from adaptor.scheduling.workers import Worker
from tests.examples import examples
from tests.scheduling.broker_world import TERMS, Player, World

SPEC = BagSpec(name="b", cwd="/", output="/nowhere", environment={})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    directory = tmp_path / "state"
    directory.mkdir()
    world = World(directory, ("fast", "slow"))
    yield world
    world.close()


def ends(world: World, bag: int, task: int) -> list[str]:
    rows = world.journal.connection.execute(
        "SELECT outcome FROM attempt WHERE bag = ? AND task = ? ORDER BY number", (bag, task)
    )
    return [outcome for (outcome,) in rows]


def test_a_task_of_the_slow_site_is_started_once_more_at_the_fast_one_before_it_is_late(world: World) -> None:
    world.submit(6)
    slow = world.join("slow", site="slow")
    world.finish(slow, took=100)
    world.report(slow)
    (late,) = slow.running
    fast = world.join("fast", site="fast")
    for _ in range(3):
        world.finish(fast, took=10)
    assert {key.task for key in fast.running} == {late.task}, "70 s are left there, and 10 s do here"


def test_a_site_where_tasks_have_finished_but_no_worker_is_left_gets_no_copy(world: World) -> None:
    world.submit(6)
    gone = world.join("gone", site="slow")
    world.finish(gone, took=100)
    world.lose(gone)
    first, second = world.join("first", site="fast"), world.join("second", site="fast")
    for _ in range(4):
        world.finish(first, took=10)
    world.report(second)
    world.now += 60
    world.report(first)
    assert {key.task for key in first.running} == {key.task for key in second.running} != set()


def test_a_task_that_ends_sooner_where_it_runs_is_left_alone(world: World) -> None:
    world.submit(4)
    slow = world.join("slow", site="slow")
    fast = world.join("fast", site="fast")
    world.finish(fast, took=10)
    world.finish(fast, took=10)
    world.report(fast)
    world.finish(slow, took=80)
    assert fast.running
    assert not slow.running, "it has run for 80 s, and takes as long here"
    world.now += 15
    world.report(slow)
    assert not slow.running, "until 100 s are over it would end sooner where it runs"
    world.now += 10
    world.report(slow)
    assert slow.running


def test_of_two_places_the_one_where_it_ends_soonest(world: World) -> None:
    world.submit(5)
    slow, late = world.join("slow", site="slow"), world.join("late", site="slow")
    world.finish(slow, took=100)
    fast = world.join("fast", site="fast")
    world.finish(fast, took=10)
    world.finish(fast, took=10)
    idle = world.join("idle", site="slow")
    assert not fast.running, "nobody has said yet that the last ones were started"
    world.report(late)
    world.report(idle)
    assert {key.task for key in fast.running} == {key.task for key in late.running}
    assert not idle.running


def test_a_task_that_has_just_begun_is_left_alone_however_runtimes_spread(world: World) -> None:
    world.submit(8)
    one, two = world.join("one", site="fast"), world.join("two", site="fast")
    for took in (1, 9, 2, 8, 3, 7):
        world.finish(one, took=took)
    world.report(one)
    world.finish(two, took=1)
    world.report(two)
    assert one.running
    assert not two.running


def state_of(replicas: int, paying: bool, finished: list[float]) -> tuple[SchedulingState, Bag]:
    state = SchedulingState({"here": TERMS})
    bag = Bag(1, msgspec.structs.replace(SPEC, replicas=replicas), 8 + len(finished))
    bag.fill()
    state.bags[1] = bag
    if paying:
        state.alone.add(1)
    for task, wall in enumerate(finished, 8):
        state.finished(bag, "here", task, wall)
        bag.lines.of(task).remove(task)
        bag.lease(task)
        bag.end(task, bag.state(0).DONE)
    return state, bag


def worker(state: SchedulingState, pilot: int, free: int = 0, left: float = 1e6) -> Worker:
    found = Worker(
        f"w{pilot}", pilot=pilot, site="here", node="n", processors=8, memory=1, deadline=1000 + left, seen=0
    )
    found.free = Room(free, 1)
    state.workers[found.id] = found
    return found


def start(state: SchedulingState, bag: Bag, at: Worker, started: float) -> AttemptKey:
    key = state.lease([at], bag, next(iter(bag.lines)).take(0), 1.0, started)
    at.held[key].started = started
    return key


@examples(150)
@given(
    runtimes=st.lists(st.floats(1, 500), min_size=1, max_size=20),
    running=st.lists(st.floats(0, 900), min_size=1, max_size=8),
    idle=st.lists(st.tuples(st.integers(1, 4), st.floats(0, 2000)), max_size=4),
    replicas=st.integers(0, 2),
    paying=st.booleans(),
    unit=st.sampled_from([1.0, 60.0, 3600.0]),
    times=st.integers(1, 3),
)
def test_replicas_are_few_useful_and_paid(
    runtimes: list[float],
    running: list[float],
    idle: list[tuple[int, float]],
    replicas: int,
    paying: bool,
    unit: float,
    times: int,
) -> None:
    state, bag = state_of(replicas, paying, runtimes)
    now = 1000.0
    busy = worker(state, 1)
    state.owners[1] = 1
    for elapsed in running:
        start(state, bag, busy, now - elapsed)
    bag.lines.drop([*bag.waiting])
    for number, (free, left) in enumerate(idle, 2):
        worker(state, number, free, left)
        if paying:
            state.owners[number] = 1
            state.meters[number] = Meter(started=now - 30, unit=unit, spare=20.0)
    fresh = sorted(runtimes)[int(0.9 * len(runtimes))]
    for _ in range(times):
        for copy in copies(state, bag, now):
            assert copy.needs <= copy.worker.time_left(now)
            assert not any(key.task == copy.task for key in copy.worker.held)
            if paying:
                assert now + fresh <= copy.until <= now - 30 + unit * (30 // unit + 1) - 20
            state.lease([copy.worker], bag, copy.task, copy.needs, now)
            assert copy.worker.free.processors >= 0
            assert copy.worker.queued == 0
    assert all(len(attempts) <= 1 + replicas for attempts in bag.live.values())


def test_the_one_that_has_run_longest_of_all_comes_first() -> None:
    state, bag = state_of(1, False, [10.0, 20.0, 30.0])
    busy = worker(state, 1)
    start(state, bag, busy, 995.0)
    oldest = start(state, bag, busy, 900.0)
    start(state, bag, busy, 960.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 2, free=1)
    (copy,) = copies(state, bag, 1000.0)
    assert copy.task == oldest.task


TENS = [10.0 * number for number in range(1, 11)]


def test_a_task_that_the_end_of_its_pilot_may_cut_is_started_once_more_where_it_has_time() -> None:
    state, bag = state_of(1, False, TENS)
    safe = start(state, bag, worker(state, 1), 940.0)
    cut = start(state, bag, worker(state, 2, left=60.0), 980.0)
    sure = start(state, bag, worker(state, 3, left=5000.0), 930.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 4, free=1, left=90.0)
    assert copies(state, bag, 1000.0) == [], "the longest has taken 100 s"
    long = worker(state, 5, free=4, left=120.0)
    (copy,) = copies(state, bag, 1000.0)
    assert copy.task == cut.task not in {safe.task, sure.task}, "80 s in all: two of ten took longer"
    assert copy.worker is long
    state.lease([copy.worker], bag, copy.task, copy.needs, 1000.0)
    assert copies(state, bag, 1000.0) == [], "it has its copy"


def test_an_idle_slot_is_first_for_a_task_that_another_worker_was_asked_to_give_back() -> None:
    """A copy would keep the slot, and the task would wait for as long as all others run."""
    state, bag = state_of(1, False, TENS)
    busy = worker(state, 2, left=60.0)
    start(state, bag, busy, 980.0)
    reserve = state.lease([busy], bag, next(iter(bag.lines)).take(0), 1.0, 980.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 5, free=1, left=200.0)
    busy.held[reserve].give_back_sent = True
    assert copies(state, bag, 1000.0) == []
    busy.held[reserve].started = 990.0  # the order came too late
    assert copies(state, bag, 1000.0)


def test_while_no_task_has_finished_nothing_is_said_of_those_that_run() -> None:
    state, bag = state_of(1, False, [])
    start(state, bag, worker(state, 1, left=60.0), 940.0)
    bag.lines.drop([*bag.waiting])
    assert likely_cuts(state, bag, 1000.0) == []


def test_a_task_that_its_own_time_limit_ends_first_is_not_cut() -> None:
    state, bag = state_of(1, False, TENS)
    bag.spec = msgspec.structs.replace(bag.spec, timeout=TimeLimit(seconds=80.0))
    start(state, bag, worker(state, 2, left=70.0), 980.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 5, free=4, left=200.0)
    assert copies(state, bag, 1000.0) == []


def test_a_pilot_that_would_leave_stays_for_what_is_far_later_than_all_others() -> None:
    state, bag = state_of(1, False, TENS)
    busy = worker(state, 1)
    late = start(state, bag, busy, 850.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 2, free=1)
    assert copies(state, bag, 1000.0) == [], "150 s: it may be a longer one"
    (copy,) = copies(state, bag, 1051.0)
    assert copy.task == late.task
    mate = worker(state, 1, free=1)
    state.workers = {"w1": busy, "mate": mate}
    (copy,) = copies(state, bag, 1000.0)
    assert copy.worker is mate, "its pilot is there in any case"


def test_a_paying_bag_uses_what_another_task_of_the_same_pilot_pays_for() -> None:
    state, bag = state_of(1, True, [10.0] * 19 + [200.0])
    late, other = worker(state, 1), worker(state, 2)
    state.owners.update({1: 1, 2: 1, 3: 1})
    slow = start(state, bag, late, 800.0)
    start(state, bag, other, 985.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 3, free=1)
    assert copies(state, bag, 1000.0) == [], "its pilot would leave"
    mate = worker(state, 2, free=1)
    mate.id = "mate"
    state.workers = {"w1": late, "w2": other, "mate": mate}
    (copy,) = copies(state, bag, 1000.0)
    assert copy.worker is mate
    assert copy.task == slow.task
    assert copy.until == pytest.approx(1185.0), "as long as the other one is expected to run"


def paid_copy(world: World, bag: int) -> tuple[Player, Player]:
    """One that is late, and an idle worker of a pilot that is paid for another five minutes."""
    world.broker.keep_apart(bag)
    late, fast = world.join("late", site="fast"), world.join("fast", site="fast")
    for player in (late, fast):
        world.broker.own_pilot(player.pilot, bag)
        world.report(player)
        world.report(player)
    world.broker.meter(fast.pilot, Meter(started=world.now, unit=400.0, spare=50.0))
    world.finish(fast, took=20)
    world.now += 30
    world.report(fast)
    return late, fast


def test_a_replica_ends_with_the_paid_time_and_the_task_goes_on_where_it_was(world: World) -> None:
    bag = world.submit(2, deadline=1e12)
    late, fast = paid_copy(world, bag)
    assert [key.task for key in fast.running] == [key.task for key in late.running]
    world.now += 250
    world.report(late)
    assert fast.running, "the unit has not ended"
    world.now += 60
    world.report(late)
    world.report(fast)
    assert not fast.running
    assert not world.broker.state.copies
    (task,) = {key.task for key in late.running}
    assert ends(world, bag, task) == [None, "cancelled"]
    world.finish(late)
    assert world.states(bag) == ["done", "done"]


def test_without_a_meter_nothing_is_replicated_at_its_expense(world: World) -> None:
    bag = world.submit(2, deadline=1e12)
    late, fast = paid_copy(world, bag)
    world.finish(fast, next(iter(fast.running)), took=1)
    assert not late.running
    bag = world.submit(2, deadline=1e12)
    world.broker.keep_apart(bag)
    late, fast = world.join("l", site="fast"), world.join("f", site="fast")
    for player in (late, fast):
        world.broker.own_pilot(player.pilot, bag)
        world.report(player)
        world.report(player)
    world.finish(fast, took=20)
    world.now += 300
    world.report(fast)
    assert not fast.running


def test_the_copies_of_a_worker_that_is_gone_are_forgotten(world: World) -> None:
    bag = world.submit(2, deadline=1e12)
    _, fast = paid_copy(world, bag)
    (key,) = world.broker.state.copies
    del world.broker.state.workers[fast.id]
    stop_unpaid_copies(world.broker.state, world.now)
    assert key not in world.broker.state.copies


def test_a_restart_does_not_make_a_replica_dear(world: World) -> None:
    bag = world.submit(2, deadline=1e12)
    late, fast = paid_copy(world, bag)
    meter = world.broker.state.meters[fast.pilot]
    world.restart()
    for player in (late, fast):
        world.broker.own_pilot(player.pilot, bag)
        world.greet(player)
    world.now += 360
    world.report(late)
    assert fast.running, "nobody has said yet up to when it is paid"
    world.broker.meter(fast.pilot, meter)
    for _ in range(2):
        world.report(late)
    assert fast.running, "it is, until the unit that has begun meanwhile ends"
    world.now += 380
    world.report(late)
    world.report(fast)
    assert not fast.running
    assert late.running


def test_a_replica_whose_task_runs_nowhere_else_any_more_goes_on(world: World) -> None:
    bag = world.submit(2, deadline=1e12)
    late, fast = paid_copy(world, bag)
    world.leave(late, Leaving.TIME_UP)
    world.now += 310
    world.report(fast)
    assert fast.running, "what it has done is not to be lost"
    world.finish(fast)
    assert world.states(bag) == ["done", "done"]


def test_workers_of_a_site_that_the_configuration_no_longer_has_are_passed_over() -> None:
    state, bag = state_of(1, False, [10.0, 20.0, 30.0])
    gone = worker(state, 1)
    key = start(state, bag, worker(state, 2), 900.0)
    gone.site, gone.awaited = "gone", True
    start(state, bag, gone, 900.0)
    bag.lines.drop([*bag.waiting])
    worker(state, 3, free=2)
    assert [copy.task for copy in copies(state, bag, 1000.0)] == [key.task]


@pytest.mark.parametrize(("workers", "times"), [(20, 4), (1000, 2)])
def test_many_idle_workers_do_not_each_cost_a_look(
    monkeypatch: pytest.MonkeyPatch, workers: int, times: int
) -> None:
    looks: list[float] = []

    def look(_state: SchedulingState, _bag: Bag, now: float) -> list[Copy]:
        looks.append(now)
        return []

    monkeypatch.setattr(leasing, "copies", look)
    state, bag = state_of(1, False, [10.0])
    start(state, bag, worker(state, 0), 990.0)
    while bag.lines.any_waits:
        task = next(iter(bag.lines)).take(0)
        bag.lease(task)
        bag.end(task, TaskState.DONE)
    idle = [worker(state, number, free=1) for number in range(1, workers)]
    for now, at in zip((1000.0, 1000.0, 1000.5, 1001.0), idle, strict=False):
        leasing.feed_idle(state, at, now)
    assert len(looks) == times
