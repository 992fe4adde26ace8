"""The simulated cluster behind the questions of a real scheduler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.model import Limits, PendingJob, Request, RunningJob
from adaptor.reports import JobState
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.queue_view import queue_state
from adaptor.simulation.simulated_backend import SimulatedBackend
from backends.base import Backend, PilotOrder, SchedulerError, SubmitRefused
from tests.simulation.trace_strategies import PROCESSORS, jobs_from, policies, traces

LIMITS = Limits(max_pending_requests=2, max_proc=6, max_tr=50)


def order(p: int, tr: int, tag: str = "ours-1") -> PilotOrder:
    return PilotOrder(
        tag=tag,
        request=Request(p, tr),
        processors_per_task=1,
        memory_per_task=None,
        directory=Path("unused"),
        worker=("worker",),
        environment={},
    )


def backend_of(*rows: tuple[int, int, int, int], policy: str = "conservative") -> SimulatedBackend:
    return SimulatedBackend(Simulation(jobs_from(list(rows)), PROCESSORS, policy), LIMITS)


def only(backend: Backend, job: str):
    (report,) = backend.jobs([job], "no such tag")
    return report


def test_the_life_of_a_pilot_that_meets_its_limit():
    backend: Backend = backend_of((0, 8, 20, 10))
    backend.cluster.advance(0)
    job = backend.submit(order(4, 30))
    report = only(backend, job)
    assert (report.state, report.start, report.planned_start) == (JobState.QUEUED, None, 20.0)
    backend.cluster.advance(10)
    report = only(backend, job)
    assert (report.state, report.start, report.planned_start) == (JobState.RUNNING, 10.0, None)
    backend.cluster.advance(40)
    report = only(backend, job)
    assert (report.state, report.start, report.end) == (JobState.WALLTIME, 10.0, 40.0)


def test_pilots_that_leave_or_are_cancelled():
    backend = backend_of()
    leaves, cancelled = backend.submit(order(6, 30)), backend.submit(order(6, 30, "ours-2"))
    backend.cluster.end(int(leaves), 7)
    backend.cluster.advance(7)
    assert only(backend, leaves).state is JobState.COMPLETED
    assert only(backend, cancelled).start == 7.0
    backend.cancel([leaves, cancelled, "77"])
    assert only(backend, leaves).state is JobState.COMPLETED
    assert (only(backend, cancelled).state, only(backend, cancelled).end) == (JobState.CANCELLED, 7.0)


def test_a_withdrawn_pilot_never_started():
    backend = backend_of((0, 8, 20, 10))
    backend.cluster.advance(0)
    job = backend.submit(order(4, 30))
    backend.cancel([job])
    assert (only(backend, job).state, only(backend, job).start) == (JobState.CANCELLED, None)
    assert backend.queue_state().pending == ()


def test_jobs_are_found_by_tag_and_those_of_others_are_not_told():
    backend = backend_of((0, 1, 5, 5))
    backend.cluster.advance(0)
    backend.submit(order(1, 5, "ours-1"))
    backend.submit(order(1, 5, "theirs-1"))
    assert [report.tag for report in backend.jobs([], "ours-")] == ["ours-1"]
    assert backend.jobs(["0"], "x") == []


@pytest.mark.parametrize(("p", "tr"), [(7, 10), (1, 51)])
def test_requests_beyond_the_limits_are_refused(p, tr):
    with pytest.raises(SubmitRefused, match="limits"):
        backend_of().submit(order(p, tr))


def test_requests_beyond_the_machine_are_refused():
    small = SimulatedBackend(Simulation(jobs_from([]), 4, "easy"), LIMITS)
    with pytest.raises(SubmitRefused, match="cluster of 4"):
        small.submit(order(5, 10))


def test_only_so_many_requests_in_the_system():
    backend = backend_of()
    first = backend.submit(order(6, 10))
    backend.submit(order(6, 10))
    with pytest.raises(SubmitRefused, match="2 requests"):
        backend.submit(order(6, 10))
    backend.cancel([first])
    backend.submit(order(6, 10))


def test_no_nodes_can_be_lent():
    with pytest.raises(SchedulerError, match="no nodes to lend"):
        backend_of().nodes([])


def test_nothing_can_be_released():
    backend = backend_of()
    with pytest.raises(SchedulerError, match="no nodes"):
        backend.release("0", ["n1"])
    assert (backend.can_release, backend.advertised_limits()) == (False, LIMITS)


def test_the_queue_as_conservative_plans_it():
    backend = backend_of((0, 5, 20, 10), (1, 8, 30, 30), (2, 3, 40, 4))
    backend.cluster.advance(5)
    state = backend.queue_state()
    assert (state.now, state.processors) == (5.0, 8)
    assert state.running == (RunningJob("0", 5, 20.0),)
    assert state.pending == (PendingJob("1", 8, 30.0, 20.0), PendingJob("2", 3, 40.0, 50.0))


def test_easy_plans_the_first_alone():
    backend = backend_of((0, 5, 20, 10), (1, 8, 30, 30), (2, 3, 40, 4), policy="easy")
    backend.cluster.advance(5)
    assert backend.queue_state().pending == (PendingJob("1", 8, 30.0, 20.0), PendingJob("2", 3, 40.0, None))


@given(traces(), policies, st.integers(0, 90))
@settings(max_examples=100, deadline=None)
def test_the_queue_is_that_of_the_schedule(jobs, policy, at):
    cluster = Simulation(jobs, PROCESSORS, policy)
    cluster.advance(at)
    state, fork = queue_state(cluster), cluster.fork()
    fork.finish()
    starts = fork.starts()
    running = np.flatnonzero((starts <= at) & (at < starts + jobs.run))
    waiting = np.flatnonzero((jobs.submit <= at) & (at < starts))
    assert sorted(int(job.id) for job in state.running) == running.tolist()
    assert [int(job.id) for job in state.pending] == waiting.tolist()
    for job in state.running:
        index = int(job.id)
        assert job.end == starts[index] + jobs.estimate[index]
    for job in state.pending:
        assert job.planned_start is None or job.planned_start >= max(at, starts[int(job.id)])


@given(traces(), st.integers(0, 90))
@settings(max_examples=100, deadline=None)
def test_the_profile_is_what_running_and_planned_jobs_leave(jobs, at):
    cluster = Simulation(jobs, PROCESSORS, "conservative")
    cluster.advance(at)
    state = queue_state(cluster)
    spans = [(float(at), job.end, job.processors) for job in state.running]
    spans += [(job.planned_start, job.planned_start + job.tr, job.processors) for job in state.pending]
    times, free = cluster.profile()
    assert times[0] == at
    assert (np.diff(times) > 0).all()
    for instant in sorted({float(at), *times.tolist(), *(end for _, end, _ in spans)}):
        used = sum(need for begin, end, need in spans if begin <= instant < end)
        assert free[np.searchsorted(times, instant, side="right") - 1] == PROCESSORS - used
