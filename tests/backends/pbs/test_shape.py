"""How requests lie on nodes: chunks that hold whole tasks, and what they ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.schema import SiteConfig
from adaptor.crafting.fits import tasks_on, unit_of, why_no_node_holds
from adaptor.model import Limits, QueueState
from adaptor.resources import Node, TaskSize
from backends.pbs.constraints import PbsShape, shape_of
from backends.pbs.openpbs.server import OpenPbs
from backends.pbs.openpbs.submitting import arguments_of
from backends.pbs.state.nodes import misfit
from backends.registry import site_rules
from tests.backends.orders import order
from tests.backends.pbs.pbs_rows import pbs_shape

GB = 2**30
LIMITS = Limits(max_pending_requests=4, max_proc=10**6, max_tr=10**6)
SITE = (
    Node(name="n1", processors=4, memory=16 * GB, gpus=(("a100", 2),)),
    Node(name="n2", processors=8, memory=16 * GB, gpus=(("a100", 4),)),
    Node(name="n3", processors=8, memory=16 * GB, gpus=(("v100", 1),)),
    Node(name="n4", processors=8, memory=64 * GB),
)


@pytest.mark.parametrize(
    ("p", "task", "shape"),
    [
        (6, TaskSize(), pbs_shape(6, 1)),
        (6, TaskSize(processors=3, memory=GB), pbs_shape(2, 3, GB)),
        (4, TaskSize(processors=2, gpus=1, gpu_type="a100"), pbs_shape(2, 2, gpus=1, gpu_type="a100")),
        (8, TaskSize(gpus=0.25, memory=GB), pbs_shape(2, 4, 4 * GB, gpus=1)),
        (2, TaskSize(gpu_type="a100"), pbs_shape(2, 1)),  # a type alone asks for nothing
        (4, TaskSize(processors=2, gpus=2), pbs_shape(2, 2, gpus=2)),
        # Tasks of two nodes: 8 processors have most of those that hold one.
        (32, TaskSize(processors=2, nodes=2), pbs_shape(4, 8, whole_nodes=True)),
        (16, TaskSize(nodes=2, gpus=1, memory=GB), pbs_shape(2, 8, GB, whole_nodes=True, gpus=1)),
    ],
)
def test_chunks_hold_whole_tasks(p: int, task: TaskSize, shape: PbsShape) -> None:
    assert shape_of(order(p, task=task), None, SITE) == shape


def test_a_whole_node_is_asked_for_what_its_tasks_need() -> None:
    task = TaskSize(processors=2, memory=3 * GB, gpus=1)
    # Of the nodes that hold any, n3 holds but one task.
    assert shape_of(order(16, task=task), 8, SITE) == pbs_shape(2, 8, 3 * GB, whole_nodes=True, gpus=1)
    assert shape_of(order(16, task=TaskSize()), 8, SITE) == pbs_shape(2, 8, whole_nodes=True)


def test_a_donated_node_gives_all_gpus_that_its_tasks_can_use() -> None:
    found = shape_of(order(8, task=TaskSize(gpus=1, gpu_type="a100"), node="n2"), None, SITE)
    assert found == pbs_shape(1, 8, None, whole_nodes=True, node="n2", gpus=4, gpu_type="a100")
    assert shape_of(order(8, task=TaskSize(), node="n2"), None, SITE).part.gpus == 0


@pytest.mark.parametrize(
    ("shape", "resource", "select"),
    [
        (pbs_shape(2, 3, GB, gpus=1), "gpu_type", "select=2:ncpus=3:mpiprocs=3:mem=1048576kb:ngpus=1"),
        (
            pbs_shape(1, 4, gpus=2, gpu_type="a100"),
            "gpu_model",
            "select=1:ncpus=4:mpiprocs=4:ngpus=2:gpu_model=a100",
        ),
        (pbs_shape(3, 4, whole_nodes=True), "gpu_type", "select=3:ncpus=4:mpiprocs=4"),
    ],
)
def test_what_qsub_is_told(shape: PbsShape, resource: str, select: str) -> None:
    site = SiteConfig(backend="pbs")
    found = arguments_of(order(4, task=TaskSize()), site, shape, Path("/p/pilot.sh"), type_resource=resource)
    assert select in found
    assert ("place=scatter:excl" if shape.whole_nodes else "place=free") in found


SIZES = st.builds(
    TaskSize,
    processors=st.integers(1, 4),
    memory=st.none() | st.integers(1, 8),
    gpus=st.sampled_from([0, 0.25, 0.5, 1, 2]),
    nodes=st.integers(1, 2),
)
NODES = st.lists(
    st.tuples(st.integers(1, 8), st.none() | st.integers(0, 16), st.integers(0, 4)), min_size=1, max_size=5
).map(
    lambda sizes: tuple(
        Node(name=f"n{n}", processors=processors, memory=memory, gpus=(("", gpus),) if gpus else ())
        for n, (processors, memory, gpus) in enumerate(sizes)
    )
)


@given(SIZES, NODES, st.integers(1, 3), st.none() | st.integers(1, 8))
def test_the_chunks_of_a_unit_hold_its_tasks(
    task: TaskSize, nodes: tuple[Node, ...], units: int, whole: int | None
) -> None:
    """Whatever the planner takes for the unit of a request."""
    config = SiteConfig(backend="pbs", whole_nodes=whole is not None, processors_per_node=whole)
    queue = QueueState(now=0, processors=sum(node.processors for node in nodes), nodes=nodes)
    unit = unit_of(site_rules(config, OpenPbs, LIMITS, 0), queue, task)
    if whole is not None and task.processors > whole:
        return  # no whole node holds a task
    shape = shape_of(order(units * unit.processors, task=task), whole, nodes)
    chunk = Node(
        name="",
        processors=shape.part.processors,
        memory=shape.part.memory,
        gpus=(("", shape.part.whole_gpus),),
    )
    held = shape.count * tasks_on(chunk, task) // task.nodes
    assert held >= units * unit.tasks
    assert shape.count * shape.part.processors == units * unit.processors
    assert shape.whole_nodes == (whole is not None or task.nodes > 1)
    if why_no_node_holds(queue, task):
        assert misfit(shape, nodes, "q") or task.nodes > 1 or whole is not None
