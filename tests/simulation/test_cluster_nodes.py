"""The cluster on nodes against the slow one."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.resources import Need
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import TraceError
from adaptor_simulation.kernels import NEED, PLACE
from adaptor_simulation.machine import lay_out, parse_machine
from tests.examples import examples
from tests.simulation.naive_cluster import NaiveCluster
from tests.simulation.node_scenes import GIB, machines, with_memory
from tests.simulation.trace_strategies import jobs_from, policies

pytestmark = pytest.mark.compiles


def waits(cluster, job):
    known = cluster.outside_job(job)
    return known.started is None and known.ended is None


@given(with_memory(), machines(), policies, st.integers(1, 4), st.integers(0, 90), st.data())
@examples(150)
def test_every_start_on_nodes_equals_that_of_the_slow_cluster(jobs, machine, policy, chunk, at, data):
    if not len(jobs):
        return
    try:
        laid_out = lay_out(jobs, machine, chunk)
    except TraceError:
        assume(False)
    fast, slow = Cluster(laid_out, policy), NaiveCluster(machine.capacity(), policy)
    for (submit, run, limit, _), chunks, each in zip(
        laid_out.jobs.table().tolist(), laid_out.chunks.tolist(), laid_out.each.tolist(), strict=True
    ):
        slow.add(submit, (chunks, tuple(each)), limit, run)
    fast.advance(at)
    ours = []
    for _ in range(data.draw(st.integers(0, 3))):
        processors, memory = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 2)) * GIB
        most = machine.chunks(Need(chunks=1, processors=processors, memory=memory))
        if not most:
            continue
        chunks, tr = data.draw(st.integers(1, most)), data.draw(st.integers(1, 30))
        need = Need(chunks=chunks, processors=processors, memory=memory)
        size = (chunks, (processors, memory)[: machine.capacity().shape[1]])
        ours.append(
            (fast.submit(chunks * processors, tr, need=need), slow.add(at, size, tr, tr, outside=True))
        )
    what = data.draw(st.sampled_from(["nothing", "cancel", "reshape"])) if ours else "nothing"
    later = at + data.draw(st.integers(0, 30))
    if what != "nothing":
        fast.advance(later)
    if what == "cancel":
        fast.cancel(ours[0][0])
        slow.cancel(later, ours[0][1])
    if what == "reshape" and waits(fast, ours[0][0]):
        need = Need(chunks=data.draw(st.integers(1, machine.processors)), processors=1)
        tr = data.draw(st.integers(1, 30))
        fast.reshape(ours[0][0], need.chunks, tr, need)
        slow.reshape(later, ours[0][1], (need.chunks, (1, 0)[: machine.capacity().shape[1]]), tr)
    fast.finish()
    started = slow.run()
    assert fast.starts().tolist() == [started[job] for job in range(len(laid_out.jobs))]
    assert [fast.outside_job(job).started for job, _ in ours] == [started.get(job) for _, job in ours]


@given(with_memory(), machines(), policies, st.integers(0, 90))
@examples(100)
def test_no_node_ever_gives_more_than_it_has(jobs, machine, policy, at):
    if not len(jobs):
        return
    assume((jobs.memory == 0).any())
    laid_out = lay_out(jobs, machine, 1)
    cluster = Cluster(laid_out, policy)
    cluster.advance(at)
    held = {node.name: [0, 0] for node in machine.nodes}
    for row in cluster.running_rows():
        parts = cluster.parts(int(row[PLACE]))
        assert sum(part.processors for part in parts) == row[NEED]
        for part in parts:
            held[part.node][0] += part.processors
            held[part.node][1] += part.memory
    for node in machine.nodes:
        assert held[node.name][0] <= node.processors
        assert held[node.name][1] <= (node.memory or 0)


def test_a_hole_of_single_processors_is_none_for_chunks():
    """One processor of each of 4 nodes is free: 4 in all, and no chunk of 2 fits before the others end."""
    machine = parse_machine("4x4")
    jobs = jobs_from([(0, 3, 100, 100)] * 4)
    cluster = Cluster(lay_out(jobs, machine, 3), "conservative")
    cluster.advance(0)
    assert cluster.profile()[1][0] == 4
    single, pair = cluster.submit(1, 10), cluster.submit(2, 10, need=Need(chunks=1, processors=2))
    cluster.finish()
    assert cluster.outside_job(single).started == 0
    assert cluster.outside_job(pair).started == 100


def test_a_node_with_idle_processors_and_no_idle_memory_is_no_hole():
    machine = parse_machine("2x8", "16G")
    jobs = msgspec.structs.replace(jobs_from([(0, 2, 100, 100)]), memory=np.array([8 * GIB]))
    cluster = Cluster(lay_out(jobs, machine, 2), "easy")
    cluster.advance(0)
    need = Need(chunks=2, processors=1, memory=12 * GIB)
    job = cluster.submit(2, 10, need=need)
    assert cluster.outside_job(job).started is None
    cluster.finish()
    assert cluster.outside_job(job).started == 100


def test_arrays_grow_with_the_queue():
    machine = parse_machine("4x2")
    cluster = Cluster(lay_out(jobs_from([(0, 8, 5, 5)] * 1000), machine, 1), "conservative")
    cluster.advance(0)
    ours = [cluster.submit(8, 10) for _ in range(300)]
    cluster.finish()
    assert cluster.starts().tolist() == [5 * i for i in range(1000)]
    assert cluster.outside_job(ours[-1]).ended == 8000


@pytest.mark.parametrize(
    ("processors", "tr", "need", "says"),
    [
        (15, 10, Need(chunks=5, processors=3), "5 chunks of 3 processors asked of nodes that hold 4"),
        (17, 10, None, "17 chunks of 1 processors asked of nodes that hold 16"),
        (6, 10, Need(chunks=3, processors=3), "3 chunks of 3 processors are not 6"),
        (0, 10, None, "0 chunks"),
        (1, 0, None, "limit of 0 s"),
    ],
)
def test_a_request_that_can_never_be_packed_is_refused(processors, tr, need, says):
    machine = parse_machine("4x4")
    cluster = Cluster(lay_out(jobs_from([]), machine, 1), "easy")
    with pytest.raises(ValueError, match=says):
        cluster.submit(processors, tr, need=need)
