"""What waiting jobs need, and where they may run."""

from __future__ import annotations

from typing import Any

import pytest

from adaptor.resources import Need
from backends.observed.rows import Amounts
from backends.pbs.fields import amounts_of
from backends.pbs.rows import PbsChunk, PbsJob, PbsQueue
from backends.pbs.state.nodes import QueueNodes, find_site
from backends.pbs.state.queue import PbsNeeds
from tests.backends.pbs.pbs_rows import job, node
from tests.backends.pbs.state.test_queue import look

GPU = {"gpu_type": frozenset({"a100"})}
NODES = [node("n1"), node("n2", traits=GPU), node("n3", traits=GPU), node("n4", queue="big")]
QUEUES = {
    "workq": PbsQueue(name="workq"),
    "gpu": PbsQueue(name="gpu", wants={"gpu_type": "a100"}),
    "big": PbsQueue(name="big"),
    "all": PbsQueue(name="all", routes_to=("workq", "big")),
}


def site(queue: str = "workq") -> QueueNodes:
    return find_site(NODES, QUEUES, queue)


def asking(*chunks: PbsChunk, **given: Any) -> PbsJob:
    return job("1", 4, chunks=chunks, **given)


def chunk(processors: int, count: int = 1, **traits: str) -> PbsChunk:
    return PbsChunk(count=count, each=Amounts(processors), traits=tuple(sorted(traits.items())))


@pytest.mark.parametrize(
    ("queue", "traits", "nodes"),
    [
        ("workq", {}, {"n1", "n2", "n3"}),
        ("workq", {"gpu_type": "a100"}, {"n2", "n3"}),
        ("gpu", {}, {"n2", "n3"}),
        ("all", {}, None),
        ("all", {"gpu_type": "a100"}, {"n2", "n3"}),
        ("workq", {"software": "matlab"}, None),  # no node has it: PBS knows it by another way
    ],
)
def test_where_a_job_may_run(queue: str, traits: dict[str, str], nodes: set[str] | None) -> None:
    need = PbsNeeds(site()).of(asking(chunk(4, **traits), queue=queue))
    assert need is not None
    assert need.nodes == (None if nodes is None else frozenset(nodes))


def test_jobs_with_the_same_answer_share_one_set() -> None:
    needs = PbsNeeds(site())
    by_queue = needs.of(asking(chunk(1), queue="gpu"))
    by_trait = needs.of(asking(chunk(2, gpu_type="a100")))
    assert by_queue is not None
    assert by_trait is not None
    assert by_queue.nodes is by_trait.nodes
    assert by_trait.gpu_type == "a100"


def test_chunks_of_several_shapes_and_places() -> None:
    needs = PbsNeeds(find_site(NODES[:1], QUEUES, "workq"))
    several = (chunk(3, 2), PbsChunk(each=amounts_of(1, 100, 2)))
    assert needs.of(asking(*several)) == Need(
        chunks=2, processors=3, others=(Need(chunks=1, processors=1, memory=100, gpus=2),)
    )
    assert needs.of(asking(*several, placing="pack")) == Need(chunks=1, processors=7, memory=100, gpus=2)
    assert needs.of(asking(chunk(2, 2), placing="scatter", exclusive=True)) == Need(
        chunks=2, processors=2, scatter=True, whole_nodes=True
    )
    assert needs.of(asking()) is None


def test_machines_of_related_queues_are_listed_and_are_not_ours() -> None:
    found = site()
    assert {each.name: each.ours for each in found.machines} == {
        "n1": True,
        "n2": True,
        "n3": True,
        "n4": False,
    }
    assert (found.processors, set(found.nodes)) == (12, {"n1", "n2", "n3"})
    assert {each.name for each in site("gpu").machines if each.ours} == {"n2", "n3"}
    assert [each.name for each in site("big").machines if each.ours] == ["n4"]


def test_what_the_sites_requests_ask_of_nodes_makes_some_not_ours() -> None:
    found = find_site(NODES, QUEUES, "workq", wants={"gpu_type": "a100"})
    assert [each.name for each in found.machines if each.ours] == ["n2", "n3"]
    assert [each.name for each in found.machines if not each.ours] == ["n1", "n4"]


def test_a_job_that_may_only_run_elsewhere_takes_nothing_of_ours() -> None:
    nodes = [node("n1"), node("n2", host="n2", traits=GPU)]
    elsewhere = asking(chunk(1, host="n9"), queue="workq")
    assert [each.processors for each in look(nodes, [elsewhere]).pending] == [4]  # nobody knows n9
    queues = PbsNeeds(find_site(NODES, QUEUES, "gpu"))
    need = queues.of(asking(chunk(1), queue="big"))
    assert need is not None
    assert not queues.concern_us(Need(chunks=1, processors=1, nodes=frozenset({"n1"})))
