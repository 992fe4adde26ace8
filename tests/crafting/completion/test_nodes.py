"""On nodes: what is asked for fits there at the time that is foretold, whatever the sum of all nodes says."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import availability
from adaptor.crafting.fits import chunk_of
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState, SubmitRequest, Withdraw
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import Need, Node, Part, TaskSize
from tests.crafting.nodes.node_queues import node_queues
from tests.examples import examples
from tests.runtimes.known import known_runtimes

FOUR = tuple(Node(name=f"n{number}", processors=4) for number in range(4))
RULES = SiteRules(limits=Limits(max_pending_requests=2, max_proc=16, max_tr=7200), time_resolution=60)


def view(
    queue: QueueState, processors: int, *pilots: PilotView, pending: int = 2, memory: int | None = None
) -> SiteState:
    limits = msgspec.structs.replace(RULES.limits, max_pending_requests=pending)
    return SiteState(
        now=queue.now,
        queue=queue,
        rules=msgspec.structs.replace(RULES, limits=limits),
        heuristic="completion",
        requests=pilots,
        demands=(
            Demand(
                waiting=50,
                runtime=60.0,
                task=TaskSize(processors=processors, memory=memory),
                times=known_runtimes(finished=10, mean=60.0, longest=60.0),
            ),
        ),
    )


def issued(seen: SiteState) -> list[SubmitRequest]:
    return [each for each in plan(seen) if isinstance(each, SubmitRequest)]


def half_taken(until: float = 1800.0) -> QueueState:
    """Of each node two processors are idle, eight in all."""
    held = tuple(Part(node=node.name, processors=2) for node in FOUR)
    return QueueState(now=0.0, processors=16, running=(RunningJob("1", 8, until, held),), nodes=FOUR)


def test_idle_processors_of_several_nodes_are_no_place_for_a_task() -> None:
    found = issued(view(half_taken(), processors=3))
    assert {each.crafted.predicted_start for each in found} == {1800.0}
    assert max(each.crafted.request.p for each in found) == 12


def test_they_are_for_tasks_that_fit() -> None:
    first, *_ = issued(view(half_taken(), processors=2))
    assert (first.crafted.predicted_start, first.crafted.request.p) == (0.0, 8)


def test_a_node_without_memory_is_no_hole() -> None:
    nodes = tuple(msgspec.structs.replace(node, memory=8) for node in FOUR)
    held = tuple(Part(node=node.name, processors=1, memory=7) for node in nodes[:3])
    queue = QueueState(now=0.0, processors=16, running=(RunningJob("1", 3, 1800.0, held),), nodes=nodes)
    first, *_ = issued(view(queue, processors=1, memory=2))
    assert (first.crafted.predicted_start, first.crafted.request.p) == (0.0, 4)


def test_a_request_that_fits_later_than_it_was_offered_is_weighed_anew() -> None:
    """One node comes free as another one is taken: their sum is no hole, and was chosen again and again."""
    halves = (Part(node="n1", processors=2),)
    ends = ((0, 2880.0), (2, 3360.0), (3, 1560.0))
    running = (
        *(RunningJob(f"r{node}", 4, end, (FOUR[node].whole,)) for node, end in ends),
        RunningJob("r1", 2, 2340.0, halves),
    )
    pending = tuple(
        PendingJob(f"p{number}", chunks, tr, need=Need(chunks=chunks, processors=1))
        for number, (chunks, tr) in enumerate([(8, 4020.0), (4, 420.0), (1, 4860.0)])
    )
    queue = QueueState(now=0.0, processors=16, running=running, pending=pending, nodes=FOUR)
    seen = view(queue, 1, pending=3)
    limits = Limits(max_pending_requests=3, max_proc=8, max_tr=3600)
    rules = msgspec.structs.replace(seen.rules, limits=limits, slot_margin=60.0, pad=6.0)
    demand = msgspec.structs.replace(seen.demands[0], waiting=200)
    found = issued(msgspec.structs.replace(seen, rules=rules, demands=(demand,)))
    assert 0 < len(found) <= 3


def test_a_place_that_is_given_up_counts_on_its_nodes() -> None:
    """One request that waits behind nodes that will be free late, and others that are free now."""
    kept = FOUR[0]
    running = tuple(RunningJob(node.name, 4, 100_000.0, (node.whole,)) for node in FOUR[2:])
    need = Need(chunks=1, processors=4, nodes=frozenset({kept.name}))
    late = PendingJob("ours1", 4, 600.0, planned_start=50_000.0, parts=(kept.whole,), need=need)
    queue = QueueState(now=0.0, processors=16, running=running, pending=(late,), nodes=FOUR)
    ours = PilotView(id=1, job="ours1", state=PilotState.QUEUED, request=Request(4, 600), submitted=-1000.0)
    (withdrawn,) = plan(view(queue, 4, ours, pending=1))
    assert isinstance(withdrawn, Withdraw)


@examples(150)
@given(node_queues(), st.integers(1, 4), st.integers(1, 3))
def test_what_is_asked_for_fits_when_it_is_to_start(queue: QueueState, processors: int, pending: int) -> None:
    seen = view(queue, processors, pending=pending)
    (demand,) = seen.demands
    free = availability(queue, chunk_of(seen.rules, queue, demand.task)).copy()
    for each in issued(seen):
        request, start = each.crafted.request, each.crafted.predicted_start
        assert start is not None
        assert free.earliest_start(request.p, request.tr, start) == start
        free.take(start, request.tr, request.p)
