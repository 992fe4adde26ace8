"""In which parts requests are asked for, and which are refused."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.fits import tasks_on
from adaptor.resources import Node, TaskSize
from backends.observed.site import SiteNodes
from backends.slurm.nodes import PartitionNodes
from backends.slurm.placing.shape import misfit, shape_of
from tests.backends.orders import order

MIB = 2**20
GIB = 2**30


def site(nodes: Iterable[Node] = (), default_memory: int | None = None, **keys: int) -> SiteNodes:
    return SiteNodes(
        name="batch",
        listed={},
        members={},
        machines=tuple(nodes),
        default_memory=default_memory,
        processor_step=keys.get("step", 1),
        most_memory=keys.get("most"),
    )


def asked(p: int, task: TaskSize, nodes: tuple[Node, ...] = (), per_node: int | None = None) -> str:
    return " ".join(shape_of(order(p, task=task), site(nodes), per_node=per_node).options())


@pytest.mark.parametrize(
    ("p", "task", "expected"),
    [
        (6, TaskSize(processors=2), "--ntasks=3 --cpus-per-task=2"),
        (6, TaskSize(processors=3, memory=GIB), "--ntasks=2 --cpus-per-task=3 --mem-per-cpu=342M"),
        (4, TaskSize(gpus=2, gpu_type="a100"), "--ntasks=4 --cpus-per-task=1 --gpus-per-task=a100:2"),
        (8, TaskSize(processors=2, gpus=0.5), "--ntasks=2 --cpus-per-task=4 --gpus-per-task=1"),
        (
            8,
            TaskSize(memory=100 * MIB, gpus=0.25),
            "--ntasks=2 --cpus-per-task=4 --mem-per-cpu=100M --gpus-per-task=1",
        ),
    ],
)
def test_tasks(p: int, task: TaskSize, expected: str) -> None:
    assert asked(p, task) == expected


def test_tasks_that_name_no_memory_get_what_the_site_gives() -> None:
    shape = shape_of(order(4, task=TaskSize(processors=2)), site((), 500 * MIB), per_node=None)
    assert "--mem-per-cpu=500M" in shape.options()


def test_no_memory_is_asked_for_where_the_nodes_name_none() -> None:
    """`RealMemory` is then 1, its default: a job that asks for more is refused for good."""
    unknown = tuple(Node(name=f"n{number}", processors=4) for number in range(2))
    task = TaskSize(processors=2, memory=GIB)
    assert asked(4, task, unknown) == "--ntasks=2 --cpus-per-task=2"
    assert asked(4, task, (*unknown, Node(name="n3", processors=4, memory=2 * GIB))).endswith(
        "--mem-per-cpu=512M"
    )


def test_whole_nodes(mixed: PartitionNodes) -> None:
    nodes = mixed.machines
    assert asked(8, TaskSize(), nodes, 4) == "--nodes=2 --exclusive --mem=0"
    assert asked(6, TaskSize(processors=6), nodes, 6) == "--nodes=1 --exclusive --mem=0 --mincpus=6"
    # Each node with 5000 MiB has 8000: a request gets as much of each.
    assert asked(4, TaskSize(memory=5000 * MIB), nodes, 4) == "--nodes=1 --exclusive --mem=8000M"
    assert asked(4, TaskSize(gpus=1), nodes, 4) == "--nodes=1 --exclusive --mem=0 --gpus-per-node=2"
    assert asked(4, TaskSize(gpus=0.5, gpu_type="a100"), nodes, 4).endswith(" --gpus-per-node=a100:2")


def test_tasks_of_several_nodes(mixed: PartitionNodes) -> None:
    task = TaskSize(processors=4, nodes=2)
    assert asked(16, task, mixed.machines) == "--nodes=4 --exclusive --mem=0 --mincpus=4"


@pytest.mark.parametrize(
    ("p", "task", "words"),
    [
        (9, TaskSize(processors=9), "no node of partition batch can run its tasks: each needs 9 processors"),
        (1, TaskSize(memory=99 * GIB), "each needs 99G on one node"),
        (1, TaskSize(gpus=1, gpu_type="h100"), "1 h100 GPU on one node"),
        (21, TaskSize(processors=3), "7 parts, each on one node, with 3 processors were asked for"),
        (5, TaskSize(gpus=1, memory=MIB), "with 1 processor, 1M of memory and 1 GPU were asked for, but"),
        (16, TaskSize(processors=8, gpus=0.5), "together hold 0"),  # the two that share a GPU fit on no node
    ],
)
def test_what_never_fits(p: int, task: TaskSize, words: str, mixed: PartitionNodes) -> None:
    shape = shape_of(order(p, task=task), site(mixed.machines), per_node=None)
    assert words in misfit(shape, task, site(mixed.machines))


def test_nodes_that_are_not_ours_hold_nothing(mixed: PartitionNodes) -> None:
    nodes = [Node(name="n1", processors=4), Node(name="n2", processors=8, ours=False)]
    task = TaskSize(processors=4)
    shape = shape_of(order(8, task=task), site(nodes), per_node=None)
    assert "together hold 1" in misfit(shape, task, site(nodes))
    assert "leave none of the nodes of partition batch" in misfit(shape, task, site(nodes[1:]))
    assert misfit(shape, task, site()) == ""


NODES = st.lists(
    st.builds(
        Node,
        name=st.just("n"),
        processors=st.integers(1, 8),
        memory=st.one_of(st.none(), st.integers(1, 16).map(lambda gib: gib * GIB)),
        gpus=st.one_of(st.just(()), st.integers(1, 4).map(lambda count: (("", count),))),
    ),
    min_size=1,
    max_size=5,
)
TASKS = st.builds(
    TaskSize,
    processors=st.integers(1, 4),
    memory=st.one_of(st.none(), st.integers(1, 4).map(lambda gib: gib * GIB)),
    gpus=st.sampled_from([0, 1, 2]),
)


@given(NODES, TASKS, st.integers(1, 20))
def test_a_request_is_refused_if_and_only_if_empty_nodes_cannot_hold_it(
    nodes: list[Node], task: TaskSize, count: int
) -> None:
    shape = shape_of(order(count * task.processors, task=task), site(nodes), per_node=None)
    room = sum(
        tasks_on(node, TaskSize(processors=task.processors, memory=shape.part.memory, gpus=task.gpus))
        for node in nodes
    )
    assert bool(misfit(shape, task, site(nodes))) == (room < count)
    assert shape.part.memory is None or shape.part.memory >= (task.memory or 0)
