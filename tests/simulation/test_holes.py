"""Must show 3: a profile of processors promises holes that are none, and one of nodes does not."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor.resources import TaskSize
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.machine import Machine, lay_out, parse_machine
from adaptor_simulation.what_if import find_holes
from tests.examples import examples
from tests.simulation.node_scenes import GIB
from tests.simulation.test_queue_view import clusters
from tests.simulation.trace_strategies import jobs_from

MACHINE = parse_machine("8x4", "16G")
RUNTIME = 60


def local_jobs(memory: int) -> Jobs:
    """Narrow jobs that come and go, so that most nodes have some processors idle; GiB of each processor."""
    draw = np.random.default_rng(5)
    rows, now = [], 0
    for _ in range(400):
        now += int(draw.integers(1, 260))
        limit = int(draw.choice([600, 1200, 3600]))
        rows.append((now, int(draw.choice([1, 1, 2, 4])), limit, int(draw.integers(limit // 2, limit + 1))))
    jobs = jobs_from(rows)
    return msgspec.structs.replace(jobs, memory=np.full(len(jobs), memory * GIB))


def both(task: TaskSize, **limits: int) -> list[GridTerms]:
    """The same terms for a planner that counts processors, and for one that sees nodes."""
    allowed = {"max_pending_requests": 3, "max_proc": 12, "max_tr": 3600, **limits}
    terms = GridTerms(
        rules=SiteRules(limits=Limits(**allowed)),
        heuristic="adaptive",
        workers=INSTANT_WORKERS,
        initial_tr=float(RUNTIME),
        task=task,
    )
    return [msgspec.structs.replace(terms, sees_nodes=sees) for sees in (False, True)]


def cluster_of(jobs: Jobs, machine: Machine = MACHINE, chunk: int = 4) -> Cluster:
    return Cluster(lay_out(jobs, machine, chunk), "conservative")


@pytest.mark.parametrize(
    ("memory", "task", "turnaround"),
    [(1, TaskSize(processors=3), 1.02), (4, TaskSize(memory=6 * GIB), 0.6)],
    ids=["3 processors", "much memory"],
)
def test_holes_that_nodes_show_are_taken_and_those_of_processors_are_none(memory, task, turnaround):
    cluster, runtimes = cluster_of(local_jobs(memory)), np.full(40, RUNTIME)
    before, after = find_holes(cluster, range(1000, 45000, 700), runtimes, both(task))
    assert before.promised >= 60
    assert before.started < 0.5 * before.promised
    assert after.promised >= 50
    assert after.started >= 0.95 * after.promised
    assert after.mean_turnaround < turnaround * before.mean_turnaround


def test_a_hole_that_is_none_by_hand():
    """One idle processor on each of 4 nodes until 1000, and 3 on a fifth: 7 in all, and room for one task."""
    machine = parse_machine("4x4+1x3")
    cluster = cluster_of(jobs_from([(0, 3, 1000, 1000)] * 4), machine, 3)
    cluster.advance(500)
    counting, seeing = both(TaskSize(processors=3), max_pending_requests=1)
    (blind,) = run_grid_job(cluster.fork(), np.full(2, RUNTIME), counting).requests
    assert (blind.p, blind.predicted_start, blind.started) == (6, 500.0, 1000)
    (true,) = run_grid_job(cluster.fork(), np.full(2, RUNTIME), seeing).requests
    assert (true.p, true.tr, true.predicted_start, true.started) == (3, 2 * RUNTIME, 500.0, 500)


@given(clusters(), st.integers(1, 12), st.integers(1, 3), st.integers(1, 30))
@examples(100)
def test_a_single_request_that_nodes_promise_now_starts_now(cluster, tasks, cpus, runtime):
    if max(node.processors for node in cluster.machine.nodes) < cpus:
        return
    _, seeing = both(TaskSize(processors=cpus), max_pending_requests=1, max_tr=40)
    seeing = msgspec.structs.replace(seeing, initial_tr=float(runtime))
    now = cluster.now
    result = run_grid_job(cluster, np.full(tasks, runtime), seeing)
    first = result.requests[0]
    if first.predicted_start == now:
        assert first.started == now
    promised, started = result.holes(0)
    assert promised == started


def test_work_counts_the_processors_of_each_task():
    cluster = cluster_of(jobs_from([]))
    _, seeing = both(TaskSize(processors=3))
    result = run_grid_job(cluster, np.full(7, RUNTIME), seeing)
    assert result.work == 7 * 3 * RUNTIME
    assert sum(request.work for request in result.requests) == result.work
    assert result.held >= result.work


def test_no_more_tasks_run_in_a_pilot_than_its_memory_holds():
    """Nodes of 4 processors with memory for 2 tasks: 8 nodes run 16 tasks at a time, on 16 processors."""
    _, seeing = both(TaskSize(memory=8 * GIB), max_proc=32, max_pending_requests=1)
    result = run_grid_job(cluster_of(jobs_from([])), np.full(32, RUNTIME), seeing)
    assert result.turnaround == 2 * RUNTIME
    assert result.requests[0].p == 16


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (TaskSize(processors=5), "each needs 5 processors on one node, and the largest node has 4"),
        (TaskSize(memory=17 * GIB), "such a node has 16G"),
    ],
)
def test_tasks_that_no_node_holds_are_refused(task, says):
    for terms in both(task):
        with pytest.raises(ReplayError, match=says):
            run_grid_job(cluster_of(jobs_from([])), np.full(3, RUNTIME), terms)


def test_a_request_that_can_never_be_packed_is_an_error_that_names_the_way_out():
    """A planner that counts processors sees 32 of them, but tasks of 3 fit on 24."""
    counting, _ = both(TaskSize(processors=3), max_proc=32, max_pending_requests=1)
    with pytest.raises(ReplayError, match=r"10 chunks of 3 processors .* hold 8; lower --max-proc"):
        run_grid_job(cluster_of(jobs_from([])), np.full(50, RUNTIME), counting)
