"""From the queue to its plan."""

from __future__ import annotations

import math

import msgspec
from hypothesis import given

from adaptor.crafting.availability import Availability, availability, schedule
from adaptor.crafting.nodes.schedule import OVERRUN
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Node

from .crafting_strategies import queues


def site(processors: int, running: list[RunningJob], pending: list[PendingJob]) -> QueueState:
    return QueueState(now=100, processors=processors, running=tuple(running), pending=tuple(pending))


def test_running_jobs_hold_until_their_limit() -> None:
    queue = site(8, [RunningJob("a", 3, 160), RunningJob("b", 2, 130), RunningJob("c", 1, math.inf)], [])
    assert availability(queue).steps() == [(100, 2), (130, 4), (160, 7)]


def test_a_job_beyond_its_limit_is_about_to_end() -> None:
    assert availability(site(8, [RunningJob("a", 3, 90)], [])).steps() == [(100, 5), (100 + OVERRUN, 8)]


def test_the_schedulers_own_plan_counts() -> None:
    queue = site(8, [], [PendingJob("a", 6, 50, planned_start=200)])
    assert schedule(queue).starts == {"a": 200}
    assert availability(queue).steps() == [(100, 8), (200, 2), (250, 8)]


def test_a_planned_start_in_the_past_is_now() -> None:
    queue = site(8, [], [PendingJob("a", 6, 50, planned_start=20)])
    assert schedule(queue).starts == {"a": 100}
    assert availability(queue).steps() == [(100, 2), (150, 8)]


def test_a_plan_that_contradicts_our_count_leaves_nothing_free() -> None:
    queue = site(8, [RunningJob("r", 6, 130)], [PendingJob("a", 4, 50, planned_start=100)])
    assert availability(queue).steps() == [(100, 0), (130, 4), (150, 8)]


def test_jobs_without_a_plan_get_the_first_hole_in_the_order_of_the_queue() -> None:
    queue = site(
        4,
        [RunningJob("r", 2, 200)],
        [PendingJob("wide", 4, 50), PendingJob("long", 2, 101), PendingJob("short", 2, 100)],
    )
    assert schedule(queue).starts == {"wide": 200, "long": 250, "short": 100}


def test_the_schedulers_plan_goes_before_the_jobs_that_it_has_not_planned() -> None:
    queue = site(4, [], [PendingJob("ours", 3, 50), PendingJob("theirs", 2, 10, planned_start=120)])
    assert schedule(queue).starts == {"theirs": 120, "ours": 130}


def test_a_job_larger_than_the_site_is_left_out() -> None:
    queue = site(4, [], [PendingJob("huge", 5, 50), PendingJob("small", 1, 50)])
    assert schedule(queue).starts == {"huge": math.inf, "small": 100}
    assert availability(queue).steps() == [(100, 3), (150, 4)]


def test_nothing_starts_behind_a_job_without_a_limit() -> None:
    queue = site(4, [RunningJob("r", 2, math.inf)], [PendingJob("a", 3, 50), PendingJob("b", 2, math.inf)])
    assert schedule(queue).starts == {"a": math.inf, "b": 100}
    assert availability(queue).steps() == [(100, 0)]


def test_a_site_without_processors_is_planned_too() -> None:
    assert availability(site(0, [], [PendingJob("a", 1, 5)])).steps() == [(100, 0)]


@given(queues())
def test_each_job_starts_as_early_as_those_before_it_allow(queue: QueueState) -> None:
    """The definition of conservative backfilling: planned alone after the others, a job gains nothing."""
    starts = schedule(queue).starts
    for index, job in enumerate(queue.pending):
        before = availability(msgspec.structs.replace(queue, pending=queue.pending[:index]))
        assert starts[job.id] == before.earliest_start(job.processors, job.tr)


@given(queues(planned=True))
def test_the_profile_is_what_the_plan_leaves(queue: QueueState) -> None:
    plan = schedule(queue)
    jobs = [(plan.starts[job.id], job) for job in queue.pending if plan.starts[job.id] < math.inf]
    for time, free in plan.profile.steps():
        running = sum(job.processors for job in queue.running if time < job.end)
        planned = sum(job.processors for start, job in jobs if start <= time < start + job.tr)
        assert free == max(0, queue.processors - running - planned)


def test_without_a_job_the_others_keep_their_planned_starts() -> None:
    """By processors and on nodes; a job that never starts holds nothing."""
    nodes = (Node(name="n1", processors=4), Node(name="n2", processors=4))
    jobs = [PendingJob("first", 8, 50), PendingJob("second", 8, 20), PendingJob("larger", 16, 20)]
    for queue in (site(8, [], jobs), msgspec.structs.replace(site(8, [], jobs), nodes=nodes)):
        left = Availability(queue).without("first")
        assert left.starts == {"second": 150.0}
        assert left.profile().steps() == [(100, 8), (150, 0), (170, 8)]


def test_without_a_running_job_its_processors_are_free() -> None:
    queue = site(8, [RunningJob("a", 3, 160), RunningJob("b", 2, 130)], [])
    assert Availability(queue).without("a").profile().steps() == [(100, 6), (130, 8)]
