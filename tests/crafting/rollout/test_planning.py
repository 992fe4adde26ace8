"""The compiled plan is that of the other heuristics."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import schedule
from adaptor.crafting.rollout.kernel import FREE, NEVER
from adaptor.crafting.rollout.planning import left_by, planned
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.jobs import Jobs
from adaptor.simulation.queue_view import planned_starts, queue_state
from tests.crafting.crafting_strategies import queues
from tests.examples import examples
from tests.simulation.trace_strategies import PROCESSORS, traces


@examples(200)
@given(queues(planned=True))
def test_the_compiled_plan_is_that_of_the_other_heuristics(queue: QueueState) -> None:
    by_core, compiled = schedule(queue), planned(queue)
    steps = [(time - queue.now, free) for time, free in by_core.profile.steps()]
    assert [(time, int(free)) for time, free in compiled.profile.T.tolist()] == steps
    told = {id: math.inf if start >= NEVER else start + queue.now for id, start in compiled.starts.items()}
    assert told == by_core.starts


requests = st.lists(st.tuples(st.integers(1, PROCESSORS), st.integers(1, 40)), min_size=1, max_size=4)


@examples(300)
@given(traces(), st.integers(0, 60), requests, st.data())
def test_what_a_withdrawn_request_leaves_is_what_a_cluster_makes_of_it(
    jobs: Jobs, at: int, requests: list[tuple[int, int]], data: st.DataObject
) -> None:
    cluster = Simulation(jobs, PROCESSORS, "conservative")
    cluster.advance(at)
    own = [cluster.submit(*request) for request in requests]
    cluster.advance(at + data.draw(st.integers(0, 20)))
    waiting = [job for job in own if job in planned_starts(cluster)]
    if not waiting:
        return
    withdrawn = data.draw(st.sampled_from(waiting))
    before = queue_state(cluster)
    told = left_by(before, {str(withdrawn)})
    cluster.cancel(withdrawn)
    after = queue_state(cluster)
    starts = {job.id: 0.0 for job in after.running if job.id in told.starts}
    starts |= {job.id: (job.planned_start or 0.0) - after.now for job in after.pending}
    assert told.starts == starts


@examples(200)
@given(queues(planned=True), st.data())
def test_no_promise_is_broken(queue: QueueState, data: st.DataObject) -> None:
    gone = set(data.draw(st.lists(st.sampled_from([job.id for job in queue.pending] or ["none"]))))
    left, before = left_by(queue, gone), planned(queue).starts
    promised = {job.id for job in queue.pending if job.planned_start is not None}
    assert left.starts.keys() == before.keys() - gone
    assert all(left.starts[id] <= before[id] for id in promised - gone)
    assert (left.profile[FREE] >= 0).all()


def test_a_request_does_not_pass_others_since_a_narrow_one_beside_it_is_withdrawn() -> None:
    """Planned anew in the order of submission it would start at 100: it came before those two."""
    wide, narrow = PendingJob("wide", 3, 1000.0, 500.0), PendingJob("narrow", 1, 50.0, 100.0)
    others = (PendingJob("1", 3, 200.0, 100.0), PendingJob("2", 3, 200.0, 300.0))
    running = (RunningJob("0", 4, 100.0),)
    queue = QueueState(now=0.0, processors=4, running=running, pending=(wide, *others, narrow))
    assert left_by(queue, {"narrow"}).starts == {"wide": 500.0, "1": 100.0, "2": 300.0}
    assert left_by(queue, {"1"}).starts == {"wide": 500.0, "2": 100.0, "narrow": 100.0}
    assert left_by(queue, {"2"}).starts == {"wide": 300.0, "1": 100.0, "narrow": 100.0}


def test_those_of_which_no_start_is_told_are_planned_in_their_order() -> None:
    first, second = PendingJob("1", 4, 100.0, 50.0), PendingJob("2", 4, 100.0)
    queue = QueueState(now=0.0, processors=4, pending=(first, second))
    assert left_by(queue, {"1"}).starts == {"2": 0.0}
