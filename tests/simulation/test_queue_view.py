"""What a cluster of nodes shows: what it holds is what its own plan says, with and without nodes."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.crafting.availability import availability
from adaptor.crafting.nodes.schedule import node_schedule
from adaptor.resources import Need
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import TraceError
from adaptor_simulation.machine import lay_out, parse_machine
from adaptor_simulation.pilot_requests import queue_state
from tests.examples import examples
from tests.simulation.node_scenes import machines, with_memory
from tests.simulation.trace_strategies import jobs_from, policies


@st.composite
def clusters(draw: st.DrawFn, policy: st.SearchStrategy[str] = policies) -> Cluster:
    jobs, machine = draw(with_memory()), draw(machines())
    assume(len(jobs))
    try:
        laid_out = lay_out(jobs, machine, draw(st.integers(1, 4)))
    except TraceError:
        assume(False)
    cluster = Cluster(laid_out, draw(policy))
    cluster.advance(draw(st.integers(0, 90)))
    return cluster


@given(clusters())
@examples(100)
def test_parts_are_those_of_the_jobs_and_fit_on_their_nodes(cluster):
    queue = queue_state(cluster)
    for job in [*queue.running, *(job for job in queue.pending if job.parts)]:
        assert sum(part.processors for part in job.parts) == job.processors
    assert all(job.need.chunks * job.need.processors == job.processors for job in queue.pending)
    planned = [job for job in queue.pending if job.planned_start is not None]
    assert len(planned) == (len(queue.pending) if cluster.policy == "conservative" else bool(queue.pending))
    for times, free in node_schedule(queue).steps:
        assert all(min(step) >= 0 for step in free), times


@given(clusters(st.just("conservative")))
@examples(100)
def test_both_views_count_the_processors_that_the_cluster_plans_to_have_free(cluster):
    times, free = cluster.profile()
    steps = list(zip(times.tolist(), free.tolist(), strict=True))
    assert availability(queue_state(cluster, shown=False)).steps() == steps
    if not cluster.machine.by_memory:
        assert availability(queue_state(cluster)).steps() == steps


@given(clusters(), st.integers(1, 3), st.integers(1, 30))
@examples(150)
def test_what_the_profile_of_nodes_promises_is_what_the_cluster_gives(cluster, processors, tr):
    """One request, of the most chunks that are promised now: it starts now, and one more chunk does not."""
    need = Need(chunks=1, processors=processors)
    profile = availability(queue_state(cluster), need)
    promised = profile.minimum(cluster.now, cluster.now + tr) // processors
    if promised:
        job = (taken := cluster.fork()).submit(
            promised * processors, tr, need=Need(chunks=promised, processors=processors)
        )
        assert taken.outside_job(job).started == cluster.now
    more = Need(chunks=promised + 1, processors=processors)
    if cluster.policy == "conservative" and cluster.machine.chunks(more) > promised:
        job = (tried := cluster.fork()).submit(more.chunks * processors, tr, need=more)
        assert tried.outside_job(job).started is None
        start = profile.earliest_start(more.chunks * processors, tr)
        assert math.isfinite(start)


def test_the_head_of_easy_is_planned_on_its_nodes():
    machine = parse_machine("2x4")
    jobs = jobs_from([(0, 3, 100, 100), (0, 3, 50, 50), (0, 4, 10, 10), (0, 4, 10, 10)])
    cluster = Cluster(lay_out(jobs, machine, 4), "easy")
    cluster.advance(0)
    head, other = queue_state(cluster).pending
    assert (head.planned_start, [part.node for part in head.parts]) == (50.0, ["n2"])
    assert (other.planned_start, other.parts) == (None, ())
    assert queue_state(cluster, shown=False).pending[0].planned_start == 50.0
    cluster.finish()
    assert cluster.starts().tolist() == [0, 0, 50, 60]
