"""Tasks are placed on nodes one by one: none spans two, and each takes its memory."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.placing import placeable, why_no_node_holds
from adaptor.model import NodeSize, QueueState

GIB = 2**30
SIZES = st.lists(
    st.builds(
        NodeSize,
        st.integers(1, 4),
        st.integers(1, 64),
        st.one_of(st.none(), st.integers(1, 64).map(lambda number: number * GIB)),
    ),
    min_size=1,
    max_size=3,
)
MEMORY = st.one_of(st.none(), st.integers(1, 80).map(lambda n: n * GIB))


def cluster(*sizes: NodeSize, in_service: int | None = None) -> QueueState:
    processors = sum(size.count * size.processors for size in sizes) if in_service is None else in_service
    return QueueState(now=0.0, processors=processors, nodes=sizes)


def test_three_processors_on_four_nodes_of_four() -> None:
    assert placeable(cluster(NodeSize(4, 4)), 3, None) == 12


def test_memory_counts_as_processors_do() -> None:
    assert placeable(cluster(NodeSize(4, 4, 4 * GIB)), 1, 2 * GIB) == 8


def test_nodes_out_of_service_hold_nothing_now() -> None:
    assert placeable(cluster(NodeSize(4, 4), in_service=8), 1, None) == 8


def test_where_no_node_is_known_all_processors_count() -> None:
    assert placeable(QueueState(now=0.0, processors=16), 3, 100 * GIB) == 16
    assert why_no_node_holds(QueueState(now=0.0, processors=16), 300, 100 * GIB) == ""


def test_the_reason_names_what_is_too_small_and_what_to_do() -> None:
    small = cluster(NodeSize(4, 4, 16 * GIB), NodeSize(1, 8, 32 * GIB))
    assert why_no_node_holds(small, 9, None) == (
        "each needs 9 processors on one node, and the largest node has 8; submit with fewer --cpus"
    )
    assert why_no_node_holds(small, 1, 100 * GIB) == (
        "each needs 100G on one node with 1 processor, and such a node has 32G; submit with less --mem"
    )
    assert why_no_node_holds(small, 8, 32 * GIB) == ""


@given(SIZES, st.integers(1, 64), MEMORY)
def test_it_is_what_one_task_after_another_finds(
    sizes: list[NodeSize], processors: int, memory: int | None
) -> None:
    nodes = [[size.processors, size.memory] for size in sizes for _ in range(size.count)]
    placed = 0
    for _ in itertools.takewhile(lambda _: _place(nodes, processors, memory), itertools.count()):
        placed += 1
    queue = cluster(*sizes)
    assert placeable(queue, processors, memory) == placed * processors
    assert bool(why_no_node_holds(queue, processors, memory)) == (placed == 0)


def _place(nodes: list[list[int | None]], processors: int, memory: int | None) -> bool:
    for node in nodes:
        free, room = node
        if (free or 0) >= processors and (room is None or (memory or 0) <= room):
            node[0] = (free or 0) - processors
            node[1] = None if room is None else room - (memory or 0)
            return True
    return False
