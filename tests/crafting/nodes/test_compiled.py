"""The compiled loops plan what the readable ones plan."""

from __future__ import annotations

import random
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.nodes import compiled as compiled_timelines
from adaptor.crafting.nodes import kernel
from adaptor.crafting.nodes.schedule import NodeSchedule, node_schedule
from adaptor.crafting.nodes.slots import slot_profile
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Node, Part
from tests.alike import alike
from tests.crafting.nodes.node_queues import needs, node_queues

pytestmark = pytest.mark.compiles


def same(queue: QueueState) -> tuple[NodeSchedule, NodeSchedule]:
    noted = [job.id for job in queue.pending[1::3]]
    plain, compiled = (node_schedule(queue, compiled=loops, noted=noted) for loops in (False, True))
    assert compiled.noted == plain.noted
    assert compiled.starts == plain.starts
    assert compiled.steps == plain.steps
    return plain, compiled


@given(node_queues(), needs())
def test_they_plan_the_same(queue: QueueState, unit: Need) -> None:
    plain, compiled = same(queue)
    assert slot_profile(compiled, unit, 0.0).steps() == slot_profile(plain, unit, 0.0).steps()


@given(
    node_queues(),
    st.lists(st.integers(0, 4), max_size=12),
    st.sampled_from([1.0, 37.3, 5e3, 1e6]),
    st.floats(-1e9, 2e9),
    st.sampled_from([1, 12, 1000]),
)
def test_openings_are_remembered_by_shape(
    queue: QueueState, more: list[int], factor: float, now: float, room: int
) -> None:
    """Also beyond the end of their grid, and where few shapes have room."""
    pending = [
        msgspec.structs.replace(job, planned_start=None, parts=(), tr=factor * job.tr)
        for job in queue.pending
    ]
    pending += [
        msgspec.structs.replace(pending[number], id=f"again {place}")
        for place, number in enumerate(more)
        if number < len(pending)
    ]
    running = tuple(msgspec.structs.replace(job, end=now + factor * job.end) for job in queue.running)
    queue = msgspec.structs.replace(queue, now=now, running=running, pending=tuple(pending))
    with mock.patch.object(compiled_timelines, "_OPENINGS", room):
        plain, compiled = (node_schedule(queue, compiled=loops) for loops in (False, True))
    assert compiled.starts == plain.starts
    assert compiled.steps == plain.steps


def test_a_gpu_of_any_type_is_the_same_one_all_the_time() -> None:
    """At each instant one of the two is free, but none for 20 s."""
    gpus = (("a100", 1), ("h100", 1))
    node = Node(name="n1", processors=8, memory=8, gpus=gpus)
    first, second = (Part(node="n1", processors=1, memory=0, gpus=(gpu,)) for gpu in gpus)
    queue = QueueState(
        now=0.0,
        processors=8,
        running=(RunningJob("r", 1, 10.0, (first,)),),
        pending=(
            PendingJob("planned", 1, 10.0, 10.0, (second,)),
            PendingJob("any", 1, 20.0, need=Need(chunks=1, processors=1, gpus=1)),
        ),
        nodes=(node,),
    )
    plain, _ = same(queue)
    assert plain.starts["any"] == 10.0


def test_rows_grow_as_jobs_are_planned() -> None:
    """Hundreds of jobs on three nodes: far more steps than there was room for."""
    draw = random.Random(1)
    pending = tuple(
        PendingJob(
            f"p{number}", 1, 10.0 * draw.randint(1, 30),
            need=Need(chunks=draw.randint(1, 5), processors=draw.randint(1, 4), memory=draw.randint(0, 4)),
        )
        for number in range(300)
    )  # fmt: skip
    queue = QueueState(
        now=0.0, processors=12, running=(RunningJob("r", 3, 50.0),), pending=pending, nodes=alike(3, 4, 8)
    )
    plain, _ = same(queue)
    assert max(len(times) for times, _ in plain.steps) > 50


def test_lists_of_several_blocks_of_nodes() -> None:
    """Jobs in a row ask for the same, as later ones do; some for the nodes of a part of the site."""
    draw = random.Random(2)
    nodes = alike(3 * kernel.BLOCK - 5, 4, 8)
    some = frozenset(node.name for node in nodes[7:150])
    running = tuple(
        RunningJob(node.name, 4, 10.0 * draw.randint(1, 9), (Part(node=node.name, processors=4, memory=8),))
        for node in draw.sample(nodes, 150)
    )
    pending: list[PendingJob] = []
    while len(pending) < 60:
        need = Need(
            chunks=draw.choice([1, 5, 70, 200]),
            processors=draw.randint(1, 4),
            memory=draw.randint(0, 4),
            nodes=draw.choice([None, some]),
        )
        tr = 10.0 * draw.randint(1, 12)
        pending += [PendingJob(f"p{len(pending) + more}", 1, tr, need=need) for more in range(4)]
    pending += [msgspec.structs.replace(job, id=f"{job.id} again") for job in pending[::3]]
    queue = QueueState(
        now=0.0, processors=4 * len(nodes), running=running, pending=tuple(pending), nodes=nodes
    )
    plain, _ = same(queue)
    assert len(set(plain.starts.values())) > 5
