"""Many jobs whose starts are known: the first of them get nodes, and until then nothing differs."""

from __future__ import annotations

import math
from unittest import mock

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.nodes import schedule as schedule_module
from adaptor.crafting.nodes.placing import TimelinesByStart
from adaptor.crafting.nodes.schedule import NodeSchedule, node_schedule
from adaptor.crafting.nodes.slots import SlotProfile, slot_profile
from adaptor.crafting.nodes.space import Space
from adaptor.crafting.nodes.timelines import Timelines
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Part
from tests.alike import alike
from tests.crafting.nodes.node_queues import needs, node_queues


@given(node_queues(), st.data())
def test_jobs_get_the_nodes_that_they_would_get_in_the_order_of_their_starts(
    queue: QueueState, data: st.DataObject
) -> None:
    space = Space(queue.nodes)
    names = tuple(node for node in queue.nodes if node.in_service)
    jobs = []
    for _ in range(data.draw(st.integers(0, 8))):
        start, seconds = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 20))
        jobs.append((space.of(data.draw(needs(names, least=0))), float(start), float(start + seconds)))
    plain, swept = Timelines(0.0, space), TimelinesByStart(0.0, space)
    for plan in (plain, swept):
        plan.hold(
            (held[0], float(start), float(job.end), held[1])
            for job in queue.running
            for start, part in enumerate(job.parts)
            if (held := space.held(part)) is not None
        )
    plain.place(sorted(jobs, key=lambda job: job[1]))
    swept.place(jobs)
    assert swept.steps() == plain.steps()


def cut_and_whole(queue: QueueState, detailed: int) -> tuple[NodeSchedule, NodeSchedule]:
    """The plan of a long queue in which only the first jobs get nodes, and that in which all do."""
    plans = []
    for first in (detailed, 10**9):
        with mock.patch.multiple(schedule_module, MANY=0, DETAILED=first):
            plans.append(node_schedule(queue, compiled=False))
    return plans[0], plans[1]


@given(node_queues(), needs(), st.data())
def test_before_the_first_job_without_nodes_the_cut_plan_is_the_whole_one(
    queue: QueueState, unit: Need, data: st.DataObject
) -> None:
    starts = st.integers(-2, 30).map(float)
    pending = tuple(msgspec.structs.replace(job, planned_start=data.draw(starts)) for job in queue.pending)
    queue = msgspec.structs.replace(queue, pending=pending)
    plan, whole = cut_and_whole(queue, data.draw(st.integers(0, 3)))
    assert plan.starts == whole.starts
    cut, full = slot_profile(plan, unit, queue.now), slot_profile(whole, unit, queue.now)
    last = min(plan.until, 60.0)
    for start in range(int(last)):
        for end in range(start + 1, int(last) + 1):
            assert cut.minimum(start, end) == full.minimum(start, end)
    untouched, windows = cut.copy(), [(start, start + 9) for start in range(0, 60, 4)]
    before = [cut.minimum(*each) for each in windows]
    start, seconds = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 30))
    free = cut.minimum(start, start + seconds)
    if free:
        cut.take(start, seconds, free)
        assert cut.minimum(start, start + seconds) == 0
        cut.give(start, seconds, free)
    assert (
        [cut.minimum(*each) for each in windows] == before == [untouched.minimum(*each) for each in windows]
    )
    assert cut.steps() == untouched.steps()


def cut() -> NodeSchedule:
    """Of four nodes of two processors: two are held until 100, and all of four from then to 200."""
    nodes = alike(4, 2)
    running = tuple(
        RunningJob(node.name, 2, 100.0, (Part(node=node.name, processors=2, memory=0),)) for node in nodes[:2]
    )
    pending = (PendingJob("a", 2, 50.0, 0.0), PendingJob("b", 8, 100.0, 100.0))
    queue = QueueState(now=0.0, processors=8, running=running, pending=pending, nodes=nodes)
    with mock.patch.multiple(schedule_module, MANY=0, DETAILED=1):
        return node_schedule(queue, compiled=False)


def test_from_then_on_a_request_may_use_any_node() -> None:
    profile = slot_profile(cut(), Need(chunks=1, processors=1), 0.0)
    assert profile.steps() == [(0.0, 2), (50.0, 4), (100.0, 0), (200.0, 8)]
    assert (profile.minimum(60, 100), profile.minimum(60, 101), profile.minimum(150, 300)) == (4, 0, 0)
    assert profile.earliest_start(8, math.inf) == 200.0
    assert profile.earliest_start(3, 50) == 50.0


def test_what_is_held_later_counts_from_then_on() -> None:
    def left(plan: NodeSchedule) -> SlotProfile:
        return slot_profile(plan, Need(chunks=1, processors=1), 0.0)

    parts = (Part(node="n1", processors=2, memory=0),)
    held = schedule_module.holding(cut(), parts, 150.0, 300.0)
    assert left(held).steps() == [(0.0, 2), (50.0, 4), (100.0, 0), (200.0, 6), (300.0, 8)]
    freed = schedule_module.holding(held, parts, 150.0, 300.0, freed=True)
    assert left(freed).steps()[:3] == [(0.0, 2), (50.0, 4), (100.0, 0)]
    assert left(freed).steps()[-1] == (200.0, 8)
