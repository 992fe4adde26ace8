"""Of which sizes recorded and made-up machines are, and what fits on them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.resources import Node
from backends.pbs.constraints import PbsShape
from backends.pbs.state.nodes import machines_of, misfit
from tests.backends.pbs.pbs_rows import node, pbs_shape

GB = 2**30
SITE = tuple(
    Node(name=f"node0{n}", processors=4, memory=4 * GB, gpus=(("", 2),) if n > 2 else ()) for n in range(1, 5)
)


def test_vnodes_count_together_and_memory_that_is_not_told_is_not_known() -> None:
    nodes = [
        node("a", processors=0, memory=0),
        node("a[0]", processors=2, memory=GB),
        node("a[1]", processors=3, memory=GB),
        node("b", state="offline"),
        node("c"),
        node("ghost", processors=0),
    ]
    assert machines_of(nodes) == (
        Node(name="a", processors=5, memory=2 * GB),
        Node(name="b", processors=4, in_service=False),
        Node(name="c", processors=4),
    )


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (pbs_shape(16, 1, None, whole_nodes=False), ""),
        (pbs_shape(8, 1, 2 * GB, whole_nodes=False), ""),
        (
            pbs_shape(16, 1, 2 * GB, whole_nodes=False),
            "16 × 1 processor and 2G of memory were asked for, each on one node, but all nodes of queue "
            "workq together hold 8: lower `limits.max_proc` of this site to 8",
        ),
        (pbs_shape(4, 3, None, whole_nodes=False), ""),
        (
            pbs_shape(5, 3, None, whole_nodes=False),
            "together hold 4: lower `limits.max_proc` of this site to 12",
        ),
        (
            pbs_shape(1, 1, 5 * GB, whole_nodes=False),
            "no node of queue workq has 1 processor and 5G of memory: its nodes have 4 processors and 4G of "
            "memory or 4 processors, 4G of memory and 2 GPUs; ask for less per task",
        ),
        (pbs_shape(4, 1, GB, gpus=1), ""),
        (pbs_shape(5, 1, GB, gpus=1), "5 × 1 processor, 1G of memory and 1 GPU were asked for"),
        (pbs_shape(1, 4, None, gpus=3), "no node of queue workq has 4 processors and 3 GPUs"),
        (
            pbs_shape(1, 1, None, gpus=1, gpu_type="a100"),
            "has 1 processor and 1 a100 GPU: its nodes have 4 proc",
        ),
        (pbs_shape(1, 6, None, whole_nodes=False), "no node of queue workq has 6 processors"),
        (pbs_shape(4, 2, None, whole_nodes=True), ""),
        (pbs_shape(5, 2, None, whole_nodes=True), "together hold 4"),
        (pbs_shape(1, 9, None, True, "node01"), ""),
    ],
)
def test_what_never_fits_is_told(shape: PbsShape, words: str) -> None:
    found = misfit(shape, SITE, "workq")
    assert words in found
    assert bool(found) == bool(words)


def test_machines_of_others_do_not_count() -> None:
    others = tuple(msgspec.structs.replace(each, ours=each.name == "node01") for each in SITE)
    assert not misfit(pbs_shape(4, 1), others, "workq")
    assert "together hold 4" in misfit(pbs_shape(5, 1), others, "workq")


def test_gpus_count_by_type_and_vnodes_out_of_service_do_not() -> None:
    nodes = [
        node("a[0]", processors=2, gpus=1, gpu_type="v100"),
        node("a[1]", processors=2, gpus=2, gpu_type="a100"),
        node("a[2]", state="offline", gpus=4, gpu_type="a100"),
        node("b", state="down", gpus=1),
    ]
    assert machines_of(nodes, ours={"a"}) == (
        Node(name="a", processors=4, gpus=(("a100", 2), ("v100", 1))),
        Node(name="b", processors=4, gpus=(("", 1),), in_service=False, ours=False),
    )


def test_where_no_node_is_known_nothing_is_refused() -> None:
    assert misfit(pbs_shape(99, 9, None, whole_nodes=False), (), "workq") == ""


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
    sizes = machines_of(nodes)
    assert misfit(pbs_shape(held + 1, processors, memory, whole_nodes=False), sizes, "q")
    if held:
        assert not misfit(pbs_shape(held, processors, memory, whole_nodes=False), sizes, "q")
