"""Tasks of several sizes in one bag: their classes, who gets which place, and what is asked for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bag_spec import BagSpec
from adaptor.model import TaskState
from adaptor.resources import OwnNeeds, TaskSize
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptStart
from adaptor.scheduling.state import SiteTerms
from adaptor.scheduling.task_sizes import MOST, TaskSizes, class_of, classes_of
from adaptor_simulation.worker import Attempt, PilotPlace
from adaptor_simulation.workers import SimulatedWorkers, TaskEnded
from tests.examples import examples

GIB = 1 << 30


def bag(total: int, needs: dict[int, OwnNeeds], **spec) -> Bag:
    made = Bag(
        1,
        BagSpec(**{"name": "b", "cwd": "", "output": "", "environment": {}, "replicas": 0} | spec),
        total,
        needs,
    )
    made.fill()
    return made


def scene(reserve: float = 0.0) -> SimulatedWorkers:
    terms = SiteTerms(initial_tr=10.0, growth_factor=2, longest=1000.0, last=0.0, reserve=reserve)
    return SimulatedWorkers(Broker({"here": terms}), idle_timeout={"here": 10_000.0})


def pilot(number: int, processors: int, memory: int = 64 * GIB, deadline: float = 1e6) -> PilotPlace:
    return PilotPlace(pilot=number, site="here", processors=processors, memory=memory, deadline=deadline)


# --- classes -----------------------------------------------------------------------------------------


def test_a_task_needs_what_its_bag_says_but_for_what_it_says_itself():
    usual = TaskSize(processors=2, memory=GIB, gpus=1, gpu_type="a100")
    assert OwnNeeds(cpus=4).over(usual) == TaskSize(processors=4, memory=GIB, gpus=1, gpu_type="a100")
    assert OwnNeeds(gpus=0.0).over(usual) == TaskSize(processors=2, memory=GIB)
    assert OwnNeeds(time=60.0).over(usual) == usual
    with pytest.raises(ValueError, match="whole number"):
        OwnNeeds(nodes=2, gpus=0.5).over(usual)


@pytest.mark.parametrize(
    ("times", "of_bag", "told"),
    [
        ({}, None, None),
        ({}, 40.0, 40.0),
        ({0: 10.0, 1: 30.0}, None, 20.0),
        ({0: 10.0}, None, None),
        ({0: 10.0}, 40.0, 25.0),
    ],
)
def test_the_mean_time_of_a_bag_is_known_where_all_its_tasks_have_one(
    times: dict[int, float], of_bag: float | None, told: float | None
) -> None:
    made = bag(2, {task: OwnNeeds(time=time) for task, time in times.items()}, time=of_bag)
    assert made.told == told


def test_the_mean_time_of_a_bag_follows_a_change_of_a_task() -> None:
    made = bag(2, {0: OwnNeeds(time=10.0), 1: OwnNeeds(time=30.0)})
    made.sizes.change(1, OwnNeeds(time=50.0))
    assert made.told == 30.0


sizes = st.builds(
    TaskSize,
    processors=st.integers(1, 64),
    memory=st.none() | st.integers(1, 256 * GIB),
    gpus=st.sampled_from([0, 0, 0.5, 1, 2]),
    gpu_type=st.sampled_from(["", "a100"]),
    nodes=st.sampled_from([1, 1, 1, 2]),
)


@given(st.lists(sizes, max_size=60, unique=True))
def test_classes_are_few_sizes_that_exist_and_cover_their_tasks(found: list[TaskSize]):
    classes = classes_of(dict.fromkeys(found, 1))
    assert len(classes) <= MOST
    assert set(classes) <= set(found)
    for size in found:
        chosen = class_of(size, classes)
        assert chosen is None or chosen.covers(size)
        assert chosen is not None or len(classes) == MOST, "there was room for its own class"


def test_ten_thousand_sizes_make_few_demands_none_much_too_large():
    """Each takes memory of its own: they are asked for by eighths."""
    needs = {task: OwnNeeds(memory=(task + 1) << 20) for task in range(10_000)}
    made = bag(10_000, needs)
    broker = Broker({"here": SiteTerms(initial_tr=10.0, growth_factor=2, longest=1000.0)})
    broker.add_bag(made, 0.0)
    demands = broker.demands("here")
    assert [demand.task.memory for demand in demands] == [(eighth * 1250) << 20 for eighth in range(8, 0, -1)]
    assert [demand.waiting for demand in demands] == [1250] * 8
    assert sum(broker.sharers("here", demands[0]).values()) == 1250


def test_sizes_of_which_none_covers_another_wait_for_their_turn():
    """More of them than classes: the rest is asked for one size after the other."""
    needs = {task: OwnNeeds(cpus=task + 1, memory=(40 - task) * GIB) for task in range(40)}
    workers = scene()
    workers.add_bag(bag(40, needs), lambda _key, _site: Attempt(5.0), 0.0)
    assert len(workers.broker.demands("here")) == MOST + 1
    for number in range(40):
        demands = workers.broker.demands("here")
        waiting = [demand for demand in demands if demand.waiting]
        if not waiting:
            break
        size = waiting[-1].task
        workers.start(pilot(number, size.processors, size.memory or 0), number * 10.0)
        workers.advance(number * 10.0 + 9)
    assert not workers.broker.busy


# --- places ------------------------------------------------------------------------------------------


def started(events) -> list[int]:
    return [event.key.task for event in events if isinstance(event, AttemptStart)]


def test_small_tasks_pass_a_large_one_that_does_not_fit():
    workers = scene()
    made = bag(4, {0: OwnNeeds(cpus=2), 1: OwnNeeds(cpus=4)})
    workers.add_bag(made, lambda _key, _site: Attempt(5.0), 0.0)
    workers.start(pilot(1, 3), 0.0)
    assert started(workers.advance(0.0)) == [0, 2]
    assert started(workers.advance(100.0)) == [3]
    assert made.state(1) is TaskState.WAITING
    workers.start(pilot(2, 4), 101.0)
    assert started(workers.advance(101.0)) == [1]


def test_a_large_task_is_not_passed_for_ever():
    """A worker is kept for it as soon as it is the next one and nothing of its size runs."""
    workers = scene()
    made = bag(100, {2: OwnNeeds(cpus=4)})
    workers.add_bag(made, lambda key, _site: Attempt(5.0 + key.task % 3), 0.0)
    workers.start(pilot(1, 4), 0.0)
    order = started(workers.advance(1000.0))
    assert order.index(2) < 8
    assert not workers.broker.busy


def test_a_task_is_not_started_where_its_own_time_is_not_left():
    workers = scene()
    made = bag(3, {0: OwnNeeds(time=500.0), 1: OwnNeeds(time=50.0)})
    workers.add_bag(made, lambda _key, _site: Attempt(5.0), 0.0)
    (demand,) = workers.broker.demands("here")
    assert (demand.runtime, demand.shortest) == (500.0, 10.0), "the task without a time needs initial_tr"
    workers.start(pilot(1, 1, deadline=100.0), 0.0)
    assert started(workers.advance(90.0)) == [1, 2]
    (demand,) = workers.broker.demands("here")
    assert (demand.runtime, demand.shortest) == (500.0, 500.0)
    workers.start(pilot(2, 1, deadline=700.0), 100.0)
    assert started(workers.advance(110.0)) == [0]


def test_a_class_learns_its_own_runtime():
    workers = scene()
    needs = {task: OwnNeeds(cpus=2) for task in range(5, 10)}
    workers.add_bag(bag(10, needs), lambda key, _site: Attempt(100.0 if key.task >= 5 else 3.0), 0.0)
    workers.start(pilot(1, 2), 0.0)
    workers.advance(10.0)
    by_size = {demand.task.processors: demand.runtime for demand in workers.broker.demands("here")}
    assert by_size[2] == 3.0, "nothing is known of them but what the bag's others took"
    workers.advance(150.0)
    by_size = {demand.task.processors: demand.runtime for demand in workers.broker.demands("here")}
    assert by_size == {2: 100.0}
    small = next(line for line in workers.broker.state.bags[1].lines if line.task.processors == 1)
    learner = workers.broker.state.learner_of(workers.broker.state.bags[1], "here", small)
    assert learner.estimate == 3.0


def test_a_size_that_no_node_has_is_given_up_and_the_others_run():
    workers = scene()
    made = bag(4, {1: OwnNeeds(cpus=64)})
    workers.add_bag(made, lambda _key, _site: Attempt(5.0), 0.0)
    assert workers.broker.give_up(1, "no node can run it", TaskSize(processors=64)) == 1
    workers.start(pilot(1, 2), 0.0)
    ends = [event for event in workers.advance(100.0) if isinstance(event, TaskEnded)]
    assert {end.task: end.state for end in ends} == {
        0: TaskState.DONE,
        1: TaskState.FAILED,
        2: TaskState.DONE,
        3: TaskState.DONE,
    }


needs = st.builds(
    OwnNeeds,
    cpus=st.none() | st.integers(1, 8),
    memory=st.none() | st.integers(1, 32).map(lambda size: size * GIB),
    time=st.none() | st.floats(1.0, 900.0),
)


@given(
    own=st.dictionaries(st.integers(0, 29), needs, max_size=30),
    order=st.sampled_from(["file", "random"]),
    places=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 32)), max_size=4),
    reserve=st.sampled_from([0.0, 30.0]),
)
@examples(60, deadline=None)
def test_no_node_ever_holds_more_than_it_has_and_every_task_ends(own, order, places, reserve):
    workers = scene(reserve)
    made = bag(30, own, cpus=2, memory=GIB, order=order)
    workers.add_bag(made, lambda key, _site: Attempt(1.0 + key.task % 7), 0.0)
    for number, (processors, gib) in enumerate([*places, (8, 32)]):
        workers.start(pilot(number, processors, gib * GIB), 0.0)
    ends: list[TaskEnded] = []
    for second in range(2000):
        ends += [event for event in workers.advance(float(second)) if isinstance(event, TaskEnded)]
        for worker in workers.broker.state.workers.values():
            held = [made.sizes.of(key.task) for key in worker.running]
            assert sum(size.processors for size in held) <= worker.whole.processors
            assert sum(size.memory or 0 for size in held) <= worker.whole.memory
        if not workers.broker.busy:
            break
    assert {end.task for end in ends if end.state is TaskState.DONE} == set(range(30))


def test_a_bag_of_one_size_has_one_line():
    sizes = TaskSizes(TaskSize(), {3: OwnNeeds(cpus=1)})
    assert not sizes.mixed, "it says what the bag says"
    assert len(bag(5, {3: OwnNeeds(cpus=1)}).lines) == 1


_some_needs = st.builds(
    OwnNeeds,
    cpus=st.none() | st.integers(1, 8),
    memory=st.none() | st.integers(1, 8).map(lambda size: size * GIB),
    gpus=st.none() | st.sampled_from([0.0, 1.0, 2.0]),
    gpu_type=st.sampled_from(["", "a100"]),
    nodes=st.none() | st.integers(1, 3),
    time=st.none() | st.floats(1.0, 900.0),
)


@given(earlier=_some_needs, later=_some_needs)
def test_changed_needs_are_those_that_the_journal_merges(earlier: OwnNeeds, later: OwnNeeds) -> None:
    usual = TaskSize(processors=2, memory=GIB, gpus=1, gpu_type="v100")
    sizes = TaskSizes(usual, {1: earlier})
    sizes.change(1, later)
    kept = TaskSizes(usual, {1: later.before(earlier)})
    assert (sizes.of(1), sizes.time(1), sizes.mixed) == (kept.of(1), kept.time(1), kept.mixed)


# --- a change of needs -------------------------------------------------------------------------------


def test_waiting_tasks_whose_needs_change_keep_their_order():
    made = bag(9, {4: OwnNeeds(cpus=2)}, order="random")
    before = [*made.waiting]
    assert made.change_needs(range(9), OwnNeeds(cpus=3, time=50.0)) == list(range(9))
    assert [task for task in made.waiting if task != 4] == [task for task in before if task != 4]
    assert {made.sizes.of(task).processors for task in range(9)} == {3}
    assert sorted(made.waiting) == list(range(9))
    assert [line.times for line in made.lines if line.waiting] == [[50.0]]


def test_needs_that_contradict_a_task_change_none():
    made = bag(3, {1: OwnNeeds(gpus=0.5)})
    before = [made.sizes.of(task) for task in range(3)]
    with pytest.raises(ValueError, match="whole number"):
        made.change_needs(range(3), OwnNeeds(nodes=2))
    assert [made.sizes.of(task) for task in range(3)] == before
    assert sorted(made.waiting) == [0, 1, 2]
