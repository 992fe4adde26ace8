"""A grid job on the simulated cluster: what must hold in every run."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given

from adaptor.crafting.availability import schedule
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor_simulation.cluster import cluster_of_processors
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.pilot_requests import planned_queue, queue_state
from tests.examples import examples
from tests.simulation.empty_cluster import empty_cluster
from tests.simulation.grid_strategies import bags, cluster_of, scenes, terms
from tests.simulation.trace_strategies import PROCESSORS, jobs_from


@given(scenes, bags, terms())
@examples(300)
def test_limits_hold_and_every_task_ends_once(scene, runtimes, terms):
    jobs, _, at = scene
    cluster, limits = cluster_of(scene), terms.rules.limits
    result = run_grid_job(cluster, np.array(runtimes), terms)
    requests = result.requests
    assert sum(request.tasks for request in requests) == len(runtimes) - result.failed
    assert result.turnaround >= (0 if result.failed else max(runtimes))
    assert result.held >= result.work
    assert result.failed or result.work == sum(runtimes)
    for request in requests:
        assert 1 <= request.p <= min(limits.max_proc, PROCESSORS)
        assert 1 <= request.tr <= limits.max_tr
        assert at <= request.submitted <= request.ended
        if request.started is not None:
            assert request.submitted <= request.started <= request.ended <= request.started + request.tr
    for instant in {request.submitted for request in requests}:
        there = [each for each in requests if each.submitted <= instant < each.ended]
        assert len(there) <= limits.max_pending_requests
    cluster.finish()
    starts = cluster.starts()
    for instant in {*starts.tolist(), *(each.started for each in requests if each.started is not None)}:
        running = (starts <= instant) & (instant < starts + jobs.run)
        ours = sum(
            each.p for each in requests if each.started is not None and each.started <= instant < each.ended
        )
        assert jobs.processors[running].sum() + ours <= PROCESSORS


@given(scenes, bags, terms())
@examples(200)
def test_no_local_job_is_delayed_by_what_came_after_it(scene, runtimes, terms):
    """Under conservative backfilling a reservation that was given before a request stays."""
    scene = (scene[0], "conservative", scene[2])
    cluster = cluster_of(scene)
    promised = {job.id: job.planned_start for job in queue_state(cluster).pending}
    run_grid_job(cluster, np.array(runtimes), terms)
    cluster.finish()
    starts = cluster.starts()
    assert all(starts[int(job)] <= start for job, start in promised.items())


def test_a_worker_that_starts_slowly_takes_its_first_task_later():
    workers = msgspec.structs.replace(INSTANT_WORKERS, boot=30)
    limits = Limits(max_pending_requests=4, max_proc=1, max_tr=1000)
    terms = GridTerms(
        rules=SiteRules(limits=limits, pad=30), heuristic="static", workers=workers, initial_tr=100.0
    )
    result = run_grid_job(empty_cluster(2), np.array([100, 100, 70]), terms)
    assert result.turnaround == 30 + 100 + 70
    assert result.held >= 270 + 2 * 30


@given(scenes)
@examples(200)
def test_the_plan_in_short_is_that_of_the_whole_queue(scene):
    cluster = cluster_of(scene)
    short, whole = schedule(planned_queue(cluster)), schedule(queue_state(cluster))
    assert short.profile.steps() == whole.profile.steps()


def one(runtimes, rows=(), *, p=4, tr=100, requests=2, heuristic="adaptive", hourly=None, poll=0):
    limits = Limits(max_pending_requests=requests, max_proc=p, max_tr=tr)
    rules = SiteRules(limits=limits, max_submissions=hourly)
    cluster = cluster_of_processors(jobs_from(list(rows)), PROCESSORS, "conservative")
    cluster.advance(0)
    return run_grid_job(
        cluster,
        np.array(runtimes, np.int64),
        GridTerms(
            rules=rules,
            heuristic=heuristic,
            workers=INSTANT_WORKERS,
            initial_tr=10.0,
            poll_interval=poll,
        ),
    )


def test_a_hole_is_taken_at_once_and_a_static_request_waits():
    rows = [(0, 4, 10, 10), (0, 8, 50, 50)]
    adaptive, static = (one([10] * 4, rows, heuristic=name) for name in ("adaptive", "static"))
    assert [(each.p, each.tr, each.started) for each in adaptive.requests] == [(4, 10, 0)]
    assert adaptive.turnaround == 10
    assert [(each.p, each.tr, each.started) for each in static.requests] == [(2, 100, 60), (2, 100, 60)]
    assert static.turnaround == 70


@pytest.mark.parametrize("heuristic", ["adaptive", "static"])
def test_the_submissions_of_an_hour_are_used_up_and_go_on(heuristic):
    """Of 100 s each, without a pilot in the system in between."""
    result = one([100] * 24, heuristic=heuristic, requests=2, hourly=2)
    sent = sorted(each.submitted for each in result.requests)
    assert len(sent) >= 6
    assert result.failed == 0
    assert all(sum(first <= each < first + 3600 for each in sent) <= 2 for first in sent)
    assert sent[2] == 3600, "and not a second later"


def test_between_two_looks_nothing_is_asked_for():
    """Each pilot runs 10 s, and the next one is asked for at the look behind its end."""
    result = one([10] * 12, requests=1, tr=10, poll=8)
    assert [each.submitted for each in result.requests] == [0, 16, 32]
    assert result.turnaround == 42


def test_tasks_longer_than_the_first_tr_are_cut_and_tr_grows():
    result = one([15] * 4)
    assert [(each.p, each.tr, each.tasks) for each in result.requests] == [(4, 10, 0), (4, 20, 4)]
    assert (result.turnaround, result.work, result.held) == (25, 60, 100)
    assert result.wasted == 40


def test_a_pilot_leaves_when_nothing_is_left_for_it():
    result = one([3] * 4, heuristic="static")
    assert [(each.tr, each.ended) for each in result.requests] == [(100, 3), (100, 3)]


@pytest.mark.parametrize(
    ("runtimes", "limits", "says"),
    [
        ([5, 101], {}, "101 s fits into no request"),
        ([], {}, "needs a task"),
        ([0], {}, "at least a second"),
        ([5], {"p": 0}, "no request is possible"),
        ([5], {"requests": 0}, "no request is possible"),
    ],
)
def test_what_could_never_end_is_refused_at_once(runtimes, limits, says):
    with pytest.raises(ReplayError, match=says):
        one(runtimes, **limits)


def test_limits_larger_than_the_machine_are_those_of_the_machine():
    result = one([5] * 30, p=1000, requests=1)
    assert {each.p for each in result.requests} == {PROCESSORS}
