"""Of which sizes recorded and made-up machines are, and what fits on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import NodeSize
from backends.pbs.nodes import find_site
from backends.pbs.openpbs.hardware import nodes_of
from backends.pbs.records import parse_long
from backends.pbs.shape import Shape
from backends.pbs.sizes import misfit, node_sizes
from tests.backends.pbs.openpbs_recordings import SITUATIONS, recorded
from tests.backends.pbs.pbs_rows import QUEUES, node
from tests.backends.pbs.test_queue import BUSY, recorded_state

GB = 2**30
SITE = (NodeSize(4, 4, 4 * GB),)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_recorded_cluster_has_four_alike_machines_whatever_is_down_or_split(situation: str) -> None:
    nodes = nodes_of(parse_long(recorded(f"{situation}-pbsnodes-av"), ""))
    assert node_sizes(nodes) == SITE
    assert find_site(nodes, QUEUES, "workq").machines == SITE


def test_the_state_of_the_queue_names_them() -> None:
    assert recorded_state("02-busy", BUSY).nodes == SITE


def test_vnodes_count_together_and_memory_that_is_not_told_is_not_known() -> None:
    nodes = [
        node("a", processors=0, memory=0),
        node("a[0]", processors=2, memory=GB),
        node("a[1]", processors=3, memory=GB),
        node("b", state="offline"),
        node("c"),
        node("ghost", processors=0),
    ]
    assert node_sizes(nodes) == (NodeSize(1, 5, 2 * GB), NodeSize(2, 4))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Shape(16, 1, None, whole_nodes=False), ""),
        (Shape(8, 1, 2 * GB, whole_nodes=False), ""),
        (
            Shape(16, 1, 2 * GB, whole_nodes=False),
            "16 × 1 processor and 2G of memory were asked for, each on one node, but all nodes of queue "
            "workq together hold 8: lower `limits.max_proc` of this site to 8",
        ),
        (Shape(4, 3, None, whole_nodes=False), ""),
        (Shape(5, 3, None, whole_nodes=False), "together hold 4: lower `limits.max_proc` of this site to 12"),
        (
            Shape(1, 1, 5 * GB, whole_nodes=False),
            "no node of queue workq has 1 processor and 5G of memory: its nodes have 4 processors and 4G of "
            "memory; ask for less per task",
        ),
        (Shape(1, 6, None, whole_nodes=False), "no node of queue workq has 6 processors"),
        (Shape(4, 2, None, whole_nodes=True), ""),
        (Shape(5, 2, None, whole_nodes=True), "together hold 4"),
        (Shape(1, 9, None, True, "node01"), ""),
    ],
)
def test_what_never_fits_is_told(shape: Shape, words: str) -> None:
    found = misfit(shape, SITE, "workq")
    assert words in found
    assert bool(found) == bool(words)


def test_where_no_node_is_known_nothing_is_refused() -> None:
    assert misfit(Shape(99, 9, None, whole_nodes=False), (), "workq") == ""


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_chunks_fit_as_often_as_machines_hold_them(
    machines: list[tuple[int, int]], processors: int, memory: int
) -> None:
    nodes = [node(f"n{n}", processors=each, memory=size) for n, (each, size) in enumerate(machines)]
    held = sum(min(each // processors, size // memory) for each, size in machines)
    sizes = node_sizes(nodes)
    assert misfit(Shape(held + 1, processors, memory, whole_nodes=False), sizes, "q")
    if held:
        assert not misfit(Shape(held, processors, memory, whole_nodes=False), sizes, "q")
