"""Slots over time are what a packing of tasks one by one finds, second by second."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import Availability, availability, schedule
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.nodes import schedule as schedule_module
from adaptor.crafting.nodes.schedule import OVERRUN, node_schedule
from adaptor.crafting.nodes.slots import SlotProfile, slot_profile
from adaptor.crafting.nodes.space import Vector, chunks_on
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import FreeSlot, Limits, PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Node, Part
from tests.alike import alike
from tests.crafting.nodes.node_queues import HORIZON, needs, node_queues

ONE = Need(chunks=1, processors=1)


def slots(queue: QueueState, unit: Need) -> SlotProfile:
    return slot_profile(node_schedule(queue), unit, queue.now)


class Oracle:
    """A site whose jobs all tell when they start and what they hold, second by second."""

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue
        jobs = [(job.parts, 0.0, job.end if job.end > 0 else OVERRUN) for job in queue.running]
        for waiting in queue.pending:
            begin = max(0.0, waiting.planned_start or 0.0)
            jobs.append((waiting.parts, begin, begin + waiting.tr))
        self._jobs = jobs

    def held(self, node: Node, second: int) -> list[Part]:
        """What jobs hold of a node during a second."""
        return [
            part
            for parts, begin, end in self._jobs
            for part in parts
            if part.node == node.name and begin <= second < end
        ]

    def most(self, unit: Need, start: int, end: int) -> int:
        """Units, placed one by one, each on one node from start to end."""
        return sum(self._on(node, unit, start, end) for node in self._queue.nodes if node.in_service)

    def _on(self, node: Node, unit: Need, start: int, end: int) -> int:
        if unit.nodes is not None and node.name not in unit.nodes:
            return 0
        placed = 0
        while self._holds(node, unit, placed + 1, start, end) and placed < (1 if unit.scatter else 99):
            placed += 1
        return placed

    def _holds(self, node: Node, unit: Need, units: int, start: int, end: int) -> bool:
        spare = dict(node.gpus)
        for second in range(start, end):
            held = self.held(node, second)
            if unit.whole_nodes and any(part.processors or part.memory or part.gpus for part in held):
                return False
            if _left(node.processors, (part.processors for part in held)) < units * unit.processors:
                return False
            memory = _left(node.memory or 0, (part.memory for part in held))
            if node.memory is not None and memory < units * unit.memory:
                return False
            for type, count in node.gpus:
                left = _left(count, (dict(part.gpus).get(type, 0) for part in held))
                spare[type] = min(spare[type], left)
        suited = [count for type, count in spare.items() if unit.gpu_type in ("", type)]
        return sum(suited) >= units * unit.gpus


def _left(capacity: int, held: Iterable[int]) -> int:
    """Where jobs hold more than there is, nothing is left."""
    return max(0, capacity - sum(held))


@given(node_queues(planned=True), needs(), st.integers(0, 40), st.integers(1, 20))
def test_a_request_gets_as_many_units_as_can_be_packed(
    queue: QueueState, unit: Need, start: int, seconds: int
) -> None:
    found = slots(queue, unit).minimum(start, start + seconds)
    assert found == Oracle(queue).most(unit, start, start + seconds) * unit.processors


@given(node_queues(planned=True), needs(), st.integers(0, 40))
def test_the_profile_shows_the_units_of_each_instant(queue: QueueState, unit: Need, second: int) -> None:
    expected = Oracle(queue).most(unit, second, second + 1) * unit.processors
    assert slots(queue, unit).free_at(second) == expected


def large_enough(node: Node, queue: QueueState) -> Node:
    """The node with processors for all that jobs hold of it at any time."""
    oracle = Oracle(queue)
    held = max(sum(part.processors for part in oracle.held(node, second)) for second in range(HORIZON))
    return msgspec.structs.replace(node, processors=max(node.processors, held))


@given(node_queues(planned=True))
def test_of_single_processors_the_sum_over_nodes_is_the_profile_without_nodes(queue: QueueState) -> None:
    """Number by number: the paper's case. Jobs of the scalar queue hold what their parts hold."""
    queue = msgspec.structs.replace(queue, nodes=tuple(large_enough(node, queue) for node in queue.nodes))
    nodes = {node.name: node for node in queue.nodes if node.in_service}
    total = sum(node.processors for node in nodes.values())

    def size(parts: tuple[Part, ...]) -> int:
        return sum(part.processors for part in parts if part.node in nodes)

    scalar = msgspec.structs.replace(
        queue,
        nodes=(),
        processors=total,
        running=tuple(RunningJob(job.id, size(job.parts), job.end) for job in queue.running),
        pending=tuple(
            PendingJob(job.id, size(job.parts), job.tr, job.planned_start) for job in queue.pending
        ),
    )
    assert slots(queue, ONE).steps() == schedule(scalar).profile.steps()


@given(node_queues(), needs(), st.data())
def test_what_is_taken_is_gone_and_comes_back(queue: QueueState, unit: Need, data: st.DataObject) -> None:
    profile = slots(queue, unit)
    untouched = profile.copy()
    taken = []
    for _ in range(4):
        start, seconds = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 20))
        free = profile.minimum(start, start + seconds)
        if free:
            units = data.draw(st.integers(1, free // unit.processors))
            profile.take(start, seconds, units * unit.processors)
            assert profile.minimum(start, start + seconds) == free - units * unit.processors
            taken.append((start, seconds, units * unit.processors))
    for each in data.draw(st.permutations(taken)):
        profile.give(*each)
    assert profile.steps() == untouched.steps()
    windows = [(start, end) for start in range(0, 60, 7) for end in range(start + 1, 70, 9)]
    assert [profile.minimum(*each) for each in windows] == [untouched.minimum(*each) for each in windows]


@given(node_queues(), needs(), st.integers(1, 8), st.integers(1, 20), st.integers(0, 20), st.integers(1, 20))
def test_the_earliest_start_is_the_first_second_with_room(
    queue: QueueState, unit: Need, units: int, seconds: int, begin: int, held: int
) -> None:
    """Beside a request that took half of what was free at some time."""
    profile, processors = slots(queue, unit), units * unit.processors
    profile.take(begin, held, profile.minimum(begin, begin + held) // 2 // unit.processors * unit.processors)
    start = profile.earliest_start(processors, seconds)
    expected = (each for each in range(200) if profile.minimum(each, each + seconds) >= processors)
    assert start == next(expected, math.inf)


@given(node_queues(), needs(), st.data())
def test_the_units_of_a_window_are_those_of_its_nodes(
    queue: QueueState, unit: Need, data: st.DataObject
) -> None:
    """Node by node, second by second."""
    profile, plan = slots(queue, unit), node_schedule(queue)
    ask, each = plan.space.of(unit), range(60)
    windows = data.draw(st.lists(st.tuples(st.integers(-2, 40), st.integers(0, 20)), min_size=1, max_size=8))
    left = [
        [chunks_on(_at(plan.steps[node], second), plan.space.capacity[node], ask) for second in each]
        for node in plan.space.lists[ask.among]
    ]
    for start, seconds in windows:
        span = slice(max(0, start), max(0, start, start + seconds - 1) + 1)
        expected = sum(min(node[span]) for node in left) * unit.processors
        assert profile.minimum(start, start + seconds) == expected


def _at(steps: tuple[list[float], list[Vector]], second: float) -> Vector:
    times, free = steps
    return free[max(0, bisect_right(times, second) - 1)]


@given(node_queues())
def test_a_copy_does_not_change_with_its_original(queue: QueueState) -> None:
    profile = slots(queue, ONE)
    twin, before = profile.copy(), profile.steps()
    free = profile.minimum(0, 10)
    profile.take(0, 10, free)
    assert twin.steps() == before
    assert twin.minimum(0, 10) == free


def test_more_than_there_is_cannot_be_taken() -> None:
    profile = slots(QueueState(now=0.0, processors=8, nodes=alike(2, 4)), ONE)
    with pytest.raises(ValueError, match="9 processors wanted for 10 s, but 8 are free"):
        profile.take(0, 10, 9)
    assert profile.steps() == [(0.0, 8)]


def test_tasks_of_three_processors_on_nodes_of_four() -> None:
    """Seen on a live OpenPBS: `select=5:ncpus=3` waits for ever on four nodes of four."""
    empty = QueueState(now=0.0, processors=16, nodes=alike(4, 4))
    assert availability(msgspec.structs.replace(empty, nodes=())).steps() == [(0.0, 16)]
    assert availability(empty, Need(chunks=1, processors=3)).steps() == [(0.0, 12)]


def test_a_node_without_idle_memory_is_no_hole() -> None:
    """One processor of each node is held with nearly all of its memory."""
    nodes = alike(2, 4, 100)
    running = tuple(
        RunningJob(node.name, 1, 50.0, (Part(node=node.name, processors=1, memory=90),)) for node in nodes
    )
    queue = QueueState(now=0.0, processors=8, running=running, nodes=nodes)
    found = Availability(queue)
    assert found.profile(ONE).steps() == [(0.0, 6), (50.0, 8)]
    assert found.profile(Need(chunks=1, processors=1, memory=20)).steps() == [(0.0, 0), (50.0, 8)]


def test_a_processor_that_moves_from_node_to_node_is_no_slot() -> None:
    """One of two nodes is free at each instant, but neither for long."""
    nodes = alike(2, 1)
    first = RunningJob("a", 1, 10.0, (Part(node="n1", processors=1),))
    second = PendingJob("b", 1, 30.0, 10.0, (Part(node="n2", processors=1),))
    profile = slots(QueueState(now=0.0, processors=2, running=(first,), pending=(second,), nodes=nodes), ONE)
    assert profile.steps() == [(0.0, 1), (40.0, 2)]
    assert profile.minimum(0, 20) == 0
    assert profile.minimum(0, 10) == 1
    assert profile.earliest_start(1, 20) == 10.0
    assert FreeSlot(10.0, math.inf, 1) in profile.free_slots()


def test_without_compiled_loops_a_long_queue_is_planned_by_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two jobs of 3 processors: their processors say that they start together, the nodes that they cannot."""
    monkeypatch.setattr(schedule_module, "has_numba", lambda: False)
    jobs = tuple(
        PendingJob(name, 3 * chunks, 10.0, need=Need(chunks=chunks, processors=3))
        for name, chunks in (("a", 1), ("b", 1), ("larger than the site", 33))
    )
    queue = QueueState(now=0.0, processors=6, pending=jobs, nodes=(*alike(1, 4), *alike(1, 2, name="small")))
    assert availability(queue).steps() == [(0.0, 3), (20.0, 6)]
    monkeypatch.setattr(schedule_module, "MANY", 1)
    assert availability(queue).steps() == [(0.0, 3), (10.0, 6)]


def test_a_job_of_uneven_chunks_holds_all_of_them() -> None:
    """As `select=1:ncpus=1+2:ncpus=4` of PBS: the two large ones decide where it starts."""
    uneven = Need(chunks=1, processors=1, others=(Need(chunks=2, processors=4),))
    nodes = alike(3, 4)
    busy = RunningJob("a", 8, 10.0, tuple(node.whole for node in nodes[:2]))
    queue = QueueState(
        now=0.0,
        processors=12,
        running=(busy,),
        pending=(PendingJob("b", 9, 20.0, need=uneven),),
        nodes=nodes,
    )
    assert node_schedule(queue).starts == {"b": 10.0}
    assert slots(queue, ONE).steps() == [(0.0, 4), (10.0, 3), (30.0, 12)]


def test_a_task_that_names_no_memory_gets_the_default_of_the_scheduler() -> None:
    queue = QueueState(now=0.0, processors=8, nodes=alike(2, 4, 100 * 2**20), default_memory=50 * 2**20)
    rules = SiteRules(limits=Limits(max_pending_requests=1, max_proc=8, max_tr=60))
    shape = RequestShape.for_demand(rules, queue, Demand(runtime=1.0))
    assert availability(queue, shape.chunk).steps() == [(0.0, 4)]
