"""The nodes of a request are the first with room, and the plan beside it is that of a queue which has it."""

from __future__ import annotations

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import Availability
from adaptor.crafting.nodes.schedule import node_schedule, parts_of
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Node, Part
from tests.crafting.nodes.node_queues import node_queues

NODES = tuple(Node(name=name, processors=4, memory=8, gpus=(("", 2),)) for name in "abcd")


def job(number: int, node: str, processors: int, memory: int, end: float) -> RunningJob:
    part = Part(node=node, processors=processors, memory=memory)
    return RunningJob(str(number), processors, end, (part,))


@st.composite
def queues(draw: st.DrawFn) -> QueueState:
    jobs = []
    for number, node in enumerate(draw(st.sets(st.sampled_from("abcd"), max_size=4))):
        held = st.integers(1, 4), st.integers(0, 8), st.integers(1, 20)
        processors, memory, end = (draw(each) for each in held)
        jobs.append(job(number, node, processors, memory, 10.0 * end))
    return QueueState(now=0.0, processors=16, running=tuple(jobs), nodes=NODES)


units = st.builds(
    Need,
    chunks=st.just(1),
    processors=st.integers(1, 4),
    memory=st.integers(0, 8),
    gpus=st.integers(0, 2),
    scatter=st.booleans(),
)


@given(queues(), units, st.integers(1, 8), st.integers(0, 25), st.integers(1, 10))
def test_the_plan_beside_a_request_is_that_of_a_queue_with_it(
    queue: QueueState, unit: Need, chunks: int, start: int, length: int
) -> None:
    begin, end = 10.0 * start, 10.0 * (start + length)
    parts = parts_of(node_schedule(queue), unit, chunks, begin, end)
    request = PendingJob("request", unit.processors * chunks, end - begin, begin, parts)
    free = Availability(queue)
    # Without parts it would be one whose nodes are not known; it has none where no node has room for a chunk.
    with_it = msgspec.structs.replace(queue, pending=(request,) if parts else ())
    planned = Availability(with_it)
    for seen in (unit, None):
        assert free.beside(request, begin).profile(seen).steps() == planned.profile(seen).steps()
        if parts:
            assert planned.without("request").profile(seen).steps() == free.profile(seen).steps()
        for gone in queue.running:
            rest = tuple(other for other in queue.running if other is not gone)
            anew = Availability(msgspec.structs.replace(queue, running=rest))
            assert free.without(gone.id).profile(seen).steps() == anew.profile(seen).steps()
    room = free.profile(unit).minimum(begin, end) // unit.processors
    assert sum(part.processors for part in parts) == min(chunks, room) * unit.processors
    assert sum(count for part in parts for _, count in part.gpus) == min(chunks, room) * unit.gpus


@given(node_queues())
def test_the_others_keep_their_nodes_where_a_noted_job_leaves(queue: QueueState) -> None:
    noted = {job.id for job in queue.pending}
    planned = Availability(queue, noted=noted)
    assert planned.nodes is not None
    assert planned.nodes.steps == node_schedule(queue).steps
    known = tuple(
        msgspec.structs.replace(
            job, planned_start=start, parts=job.parts or planned.nodes.noted.get(job.id, ())
        )
        for job in queue.pending
        if (start := planned.starts[job.id]) < math.inf
    )
    for gone in planned.nodes.noted:
        stay = tuple(job for job in known if job.id != gone)
        anew = Availability(msgspec.structs.replace(queue, pending=stay))
        assert planned.without(gone).profile().steps() == anew.profile().steps()


def test_the_first_nodes_with_room_are_taken() -> None:
    queue = QueueState(now=0.0, processors=16, running=(job(1, "a", 2, 0, 100.0),), nodes=NODES)
    plan = node_schedule(queue)
    found = parts_of(plan, Need(chunks=1, processors=3), 2, 0.0, 50.0)
    assert [(part.node, part.processors) for part in found] == [("b", 3), ("c", 3)]
    found = parts_of(plan, Need(chunks=1, processors=3), 2, 100.0, 200.0)
    assert [part.node for part in found] == ["a", "b"]
