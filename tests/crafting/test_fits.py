"""Tasks are placed on nodes one by one: none spans two, and each takes its memory."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.fits import RequestShape, part_of, placeable, unit_of, why_no_node_holds, width
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import Allowed, Bound, Limits, QueueState
from adaptor.resources import Node, TaskSize
from tests.alike import alike

GIB = 2**30
NODES = st.lists(
    st.builds(
        Node,
        name=st.uuids().map(str),
        processors=st.integers(1, 64),
        memory=st.one_of(st.none(), st.integers(1, 64).map(lambda number: number * GIB)),
        gpus=st.sampled_from([(), (("a100", 4),), (("a100", 1), ("h100", 2)), (("", 2),)]),
    ),
    min_size=1,
    max_size=8,
)


MEMORY = st.one_of(st.none(), st.integers(1, 80).map(lambda n: n * GIB))
TASKS = st.builds(
    TaskSize,
    processors=st.integers(1, 64),
    memory=MEMORY,
    gpus=st.sampled_from([0, 0, 0.25, 0.5, 1, 2]),
    gpu_type=st.sampled_from(["", "a100", "v100"]),
)


def cluster(*nodes: Node, in_service: int | None = None) -> QueueState:
    processors = sum(node.processors for node in nodes) if in_service is None else in_service
    return QueueState(now=0.0, processors=processors, nodes=nodes)


def size(processors: int, memory: int | None = None, gpus: float = 0, type: str = "") -> TaskSize:
    return TaskSize(processors=processors, memory=memory, gpus=gpus, gpu_type=type)


def test_three_processors_on_four_nodes_of_four() -> None:
    assert placeable(cluster(*alike(4, 4)), size(3)) == 12


def test_memory_counts_as_processors_do() -> None:
    assert placeable(cluster(*alike(4, 4, 4 * GIB)), size(1, 2 * GIB)) == 8


def test_nodes_out_of_service_hold_nothing_now() -> None:
    assert placeable(cluster(*alike(4, 4), in_service=8), size(1)) == 8


def test_where_no_node_is_known_all_processors_count() -> None:
    assert placeable(QueueState(now=0.0, processors=16), size(3, 100 * GIB)) == 16
    assert why_no_node_holds(QueueState(now=0.0, processors=16), size(300, 100 * GIB)) == ""


def test_the_reason_names_what_is_too_small_and_what_to_do() -> None:
    small = cluster(*alike(4, 4, 16 * GIB), *alike(1, 8, 32 * GIB, name="wide"))
    assert why_no_node_holds(small, size(9)) == (
        "each needs 9 processors on one node, and the largest node has 8; ask for fewer cpus"
    )
    assert why_no_node_holds(small, size(1, 100 * GIB)) == (
        "each needs 100G on one node with 1 processor, and such a node has 32G; ask for less memory"
    )
    assert why_no_node_holds(small, size(8, 32 * GIB)) == ""


def test_tasks_share_a_gpu_but_never_span_two() -> None:
    pair = cluster(*alike(1, 8, gpus=(("a100", 2),)))
    assert placeable(pair, size(1, gpus=0.5)) == 4
    assert placeable(pair, size(1, gpus=0.4)) == 4
    assert placeable(pair, size(1, gpus=2)) == 1
    assert placeable(pair, size(3, gpus=1)) == 6


def test_the_reason_names_gpus_and_their_types() -> None:
    site = cluster(*alike(2, 4, gpus=(("a100", 2),)), *alike(2, 64, name="cpu"))
    assert why_no_node_holds(site, size(1, gpus=3)) == (
        "each needs 3 GPUs on one node with 1 processor, and the most that such a node has is 2; "
        "ask for fewer GPUs"
    )
    assert why_no_node_holds(site, size(1, gpus=1, type="h100")) == (
        "each needs 1 h100 GPU on one node with 1 processor, and the site has a100"
    )
    assert why_no_node_holds(site, size(8, gpus=1)) == (
        "each needs 1 GPU on one node with 8 processors, and no such node has any"
    )
    assert why_no_node_holds(cluster(*alike(1, 4)), size(1, gpus=1)) == (
        "each needs 1 GPU on one node with 1 processor, and the site has no GPUs"
    )


def test_a_task_of_several_nodes_takes_whole_ones() -> None:
    site = cluster(*alike(4, 4))
    pair = TaskSize(processors=2, nodes=2)
    assert placeable(site, pair) == 16
    assert why_no_node_holds(site, pair) == ""
    assert why_no_node_holds(site, TaskSize(processors=2, nodes=5)) == (
        "each needs 5 nodes, and 4 of the site hold it; ask for fewer nodes"
    )


@given(NODES, TASKS)
def test_it_is_what_one_task_after_another_finds(nodes: list[Node], task: TaskSize) -> None:
    free = [_Free(node) for node in nodes]
    placed = 0
    for _ in itertools.takewhile(lambda _: any(node.place(task) for node in free), itertools.count()):
        placed += 1
    queue = cluster(*nodes)
    assert placeable(queue, task) == placed * task.processors
    assert bool(why_no_node_holds(queue, task)) == (placed == 0)


class _Free:
    """What is left of a node, GPU by GPU."""

    def __init__(self, node: Node) -> None:
        self.processors, self.memory = node.processors, node.memory
        self.gpus = [(type, 1.0) for type, count in node.gpus for _ in range(count)]

    def place(self, task: TaskSize) -> bool:
        suited = [place for place, gpu in enumerate(self.gpus) if task.gpu_type in ("", gpu[0])]
        fitting = [place for place in suited if self.gpus[place][1] >= min(task.gpus, 1) - 1e-6]
        if self.processors < task.processors or len(fitting) < task.whole_gpus:
            return False
        if self.memory is not None and self.memory < (task.memory or 0):
            return False
        self.processors -= task.processors
        self.memory = None if self.memory is None else self.memory - (task.memory or 0)
        for place in fitting[: task.whole_gpus]:
            type, share = self.gpus[place]
            self.gpus[place] = type, share - min(task.gpus, 1)
        return True


def in_steps(
    step: int = 1, most: int | None = None, nodes: int = 2, memory: int | None = 8 * GIB
) -> QueueState:
    queue = cluster(*alike(nodes, 8, memory))
    return msgspec.structs.replace(queue, processor_step=step, most_memory=most)


@pytest.mark.parametrize(
    ("queue", "task", "part", "tasks"),
    [
        (in_steps(2), size(1), 2, 2),
        (in_steps(2), size(2), 2, 1),
        (in_steps(2), size(3), 4, 1),
        (in_steps(4), size(1, 3 * GIB), 4, 2),  # a node has memory for two of them
        (in_steps(1, GIB), size(1, 3 * GIB), 3, 1),
        (in_steps(1, GIB), size(4, 3 * GIB), 4, 1),
        (in_steps(2, GIB), size(1, 3 * GIB), 4, 1),
        (in_steps(2, 2 * GIB), size(1, GIB), 2, 2),
        (in_steps(2), size(1, gpus=0.5), 2, 2),
        (in_steps(2), size(1, gpus=1), 2, 1),
    ],
)
def test_a_part_has_whole_cores_and_the_processors_of_its_memory(
    queue: QueueState, task: TaskSize, part: int, tasks: int
) -> None:
    found, together = part_of(queue, task)
    assert (found.processors, together) == (part, tasks)
    rules = SiteRules(limits=Limits(max_pending_requests=1, max_proc=16, max_tr=60))
    unit = unit_of(rules, queue, task)
    assert (unit.processors, unit.tasks) == (part, tasks)
    assert width(queue, task) == -(-part // tasks)


def test_what_the_site_holds_is_counted_in_parts() -> None:
    assert placeable(in_steps(2), size(3)) == 16  # four of four processors
    assert placeable(in_steps(1, GIB), size(1, 3 * GIB)) == 12  # two of three on each node
    assert placeable(in_steps(1, GIB, memory=64 * GIB), size(1, 9 * GIB)) == 0


def test_a_task_whose_memory_takes_more_processors_than_a_node_has_is_told_so() -> None:
    queue = in_steps(1, GIB, memory=64 * GIB)
    assert why_no_node_holds(queue, size(1, 8 * GIB)) == ""
    assert why_no_node_holds(queue, size(1, 9 * GIB)) == (
        "each needs 9G, for which the scheduler gives 9 processors on one node (1G each), and the largest "
        "node has 8; ask for less memory"
    )


@pytest.mark.parametrize(
    ("allowed", "least"), [(Allowed(), 2), (Allowed(min_parts=2), 4), (Allowed(min_proc=5), 6)]
)
def test_no_request_is_smaller_than_the_scheduler_takes(allowed: Allowed, least: int) -> None:
    queue = msgspec.structs.replace(in_steps(2), allowed=allowed)
    rules = SiteRules(limits=Limits(max_pending_requests=1, max_proc=16, max_tr=60))
    shape = RequestShape.for_demand(rules, queue, Demand(task=size(1), waiting=1, runtime=1.0))
    assert shape.processors_for(1) == least
    assert (shape.fit(least), shape.fit(least - 1)) == (least, 0)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (Allowed(), (4, 16, 3600)),
        (Allowed(max_proc=8, max_tr=600, in_system=2), (2, 8, 600)),
        (Allowed(max_work=16 * 900), (4, 16, 3600)),
        (Allowed(max_work=60), (4, 16, 60)),
    ],
)
def test_limits_are_what_the_scheduler_allows_now(allowed: Allowed, expected: tuple[int, int, int]) -> None:
    limits = Limits(max_pending_requests=4, max_proc=16, max_tr=3600)
    found = limits.within(msgspec.structs.replace(in_steps(), allowed=allowed))
    assert (found.max_pending_requests, found.max_proc, found.max_tr) == expected


@pytest.mark.parametrize(
    ("task", "allowed", "expected"),
    [
        (size(1), Allowed(max_work=16 * 900), (8, 1800)),
        (size(4), Allowed(max_work=600), (4, 150)),
        (size(1), Allowed(work_left=Bound(1200, "QOS q"), max_work=16 * 900), (2, 600)),
        (size(1), Allowed(work_left=Bound(30, "QOS q"), max_work=16 * 900), (8, 1800)),  # it waits
    ],
)
def test_processors_and_time_are_cut_to_what_such_a_task_needs(
    task: TaskSize, allowed: Allowed, expected: tuple[int, int]
) -> None:
    queue = msgspec.structs.replace(in_steps(), allowed=allowed)
    limits = Limits(max_pending_requests=4, max_proc=16, max_tr=3600).within(queue)
    shape = RequestShape.for_demand(
        SiteRules(limits=limits), queue, Demand(task=task, waiting=1, runtime=60.0)
    )
    assert (shape.widest, shape.rules.limits.max_tr) == expected


MIB = 2**20
ONE_MEMORY = Allowed(max_memory=Bound(500 * MIB, "MaxTRES=mem of account lab"))
SOME_MEMORY = Allowed(min_memory=Bound(500 * MIB, "MinTRES=mem of QOS q"))
FEW_GPUS = Allowed(max_gpus=Bound(2, "GrpTRES=gres/gpu of account lab"))
SOME_GPUS = Allowed(min_gpus=Bound(2, "MinTRES=gres/gpu of QOS q"))


@pytest.mark.parametrize(
    ("task", "allowed", "why"),
    [
        (TaskSize(memory=600 * MIB), ONE_MEMORY, "each needs 600M, and a request may have 500M (MaxTRES=mem"),
        (TaskSize(), ONE_MEMORY, ""),  # it gets no more than that
        (TaskSize(processors=4), ONE_MEMORY, ""),
        (TaskSize(gpus=3), FEW_GPUS, "each needs 3 GPUs, and a request may have 2 (GrpTRES=gres/gpu of"),
        (TaskSize(), SOME_GPUS, "each request must have 2 GPUs at least (MinTRES=gres/gpu of QOS q)"),
    ],
)
def test_what_no_request_may_have_is_refused(task: TaskSize, allowed: Allowed, why: str) -> None:
    found = why_no_node_holds(with_memory(allowed), task)
    assert found.startswith(why)
    assert bool(found) is bool(why)


def with_memory(allowed: Allowed) -> QueueState:
    """Two nodes of four processors and 4 GB, of which a processor gets 1 GB."""
    nodes = tuple(
        Node(name=f"n{number}", processors=4, memory=4000 * MIB, gpus=(("", 4),)) for number in range(2)
    )
    return QueueState(now=0, processors=8, nodes=nodes, default_memory=1000 * MIB, allowed=allowed)


@pytest.mark.parametrize(
    ("task", "allowed", "expected"),
    [
        (TaskSize(), ONE_MEMORY, (1, 1)),
        (TaskSize(memory=100 * MIB), ONE_MEMORY, (1, 5)),
        (TaskSize(processors=4), ONE_MEMORY, (4, 4)),
        (TaskSize(memory=100 * MIB), SOME_MEMORY, (5, 8)),
        (TaskSize(gpus=1), FEW_GPUS, (1, 2)),
        (TaskSize(gpus=2), FEW_GPUS, (1, 1)),
        (TaskSize(processors=2, gpus=1), FEW_GPUS, (2, 4)),
        (TaskSize(), FEW_GPUS, (1, 8)),
    ],
)
def test_memory_and_gpus_of_a_request_bound_its_processors(
    task: TaskSize, allowed: Allowed, expected: tuple[int, int]
) -> None:
    rules = SiteRules(limits=Limits(max_pending_requests=1, max_proc=16, max_tr=60))
    demand = Demand(task=task, waiting=1, runtime=1.0)
    shape = RequestShape.for_demand(rules, with_memory(allowed), demand)
    assert (shape.processors_for(1), shape.widest) == expected


def test_the_limits_of_a_site_are_the_most_that_any_partition_allows_now() -> None:
    some = msgspec.structs.replace(in_steps(), allowed=Allowed(max_proc=2))
    queue = msgspec.structs.replace(in_steps(), partitions={"a": some, "b": in_steps()})
    each = Limits(max_pending_requests=4, max_proc=16, max_tr=3600)
    found = msgspec.structs.replace(each, partitions={"a": each, "b": each, "closed": each}).within(queue)
    assert (found.max_proc, found.partitions["a"].max_proc, found.partitions["closed"].max_proc) == (
        16,
        2,
        16,
    )
