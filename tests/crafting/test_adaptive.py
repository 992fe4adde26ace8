"""Algorithm 2: first the cases that a reader can follow by hand, then what must always hold."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.availability import Availability, availability, schedule
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.places import CraftingSituation
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import CraftedRequest, Limits, PendingJob, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from adaptor.units import round_up
from tests.examples import examples

from .crafting_strategies import situations

MINUTE = 60


def situation(
    queue: QueueState, tasks: int, runtime: float, *, requests: int = 3, max_proc: int = 64,
    max_tr: int = 86400, pad: float = 0.0, margin: int = 0, per_task: int = 1, granularity: int = 1,
) -> CraftingSituation:  # fmt: skip
    rules = SiteRules(
        limits=Limits(max_pending_requests=requests, max_proc=max_proc, max_tr=max_tr),
        time_resolution=MINUTE, slot_margin=margin, pad=pad, granularity=granularity,
    )  # fmt: skip
    demand = Demand(runtime=runtime, task=TaskSize(processors=per_task))
    return CraftingSituation(
        free=Availability(queue),
        shape=RequestShape.for_demand(rules, queue, demand),
        allowed_requests=requests,
        remaining_tasks=tasks,
    )


def site(processors: int, *jobs: RunningJob | PendingJob) -> QueueState:
    return QueueState(
        now=0,
        processors=processors,
        running=tuple(job for job in jobs if isinstance(job, RunningJob)),
        pending=tuple(job for job in jobs if isinstance(job, PendingJob)),
    )


def with_hole(processors: int, minutes: int) -> QueueState:
    """A site of 16 with a hole of this size now, in front of a planned job of the whole site for a day."""
    return site(
        16,
        RunningJob("local", 16 - processors, minutes * MINUTE),
        PendingJob("planned", 16, 86400, planned_start=minutes * MINUTE),
    )


def shapes(given: CraftingSituation) -> list[tuple[Request, float | None]]:
    return [(each.request, each.predicted_start) for each in adaptive(given)]


def test_an_idle_site_gives_each_task_a_processor_at_once() -> None:
    assert shapes(situation(site(64), 10, 6 * MINUTE)) == [(Request(10, 360), 0)]


def test_wide_slots_take_several_requests_of_max_proc() -> None:
    crafted = shapes(situation(site(16), 16, 6 * MINUTE, max_proc=6))
    assert crafted == [(Request(6, 360), 0), (Request(6, 360), 0), (Request(4, 360), 0)]


def test_a_hole_is_filled_with_as_many_rounds_as_it_holds() -> None:
    """14 minutes hold two tasks of 6 minutes on each of 4 processors."""
    crafted = adaptive(situation(with_hole(4, 14), 120, 6 * MINUTE, requests=1, max_tr=3600))
    assert [each.request for each in crafted] == [Request(4, 720)]
    assert crafted[0].tasks == 8
    assert crafted[0].reason == (
        "asks 4 × 12m for 8 of 120 tasks of 6m: "
        "the slot free from now for 14m on 4 processors gives the best throughput"
    )


def test_pad_and_margin_are_taken_off_the_hole() -> None:
    """14 minutes less a margin of 30 s are 13 whole minutes: one task of 6 m 30 s and the pad."""
    crafted = shapes(situation(with_hole(4, 14), 120, 390, requests=1, max_tr=3600, pad=30, margin=30))
    assert crafted == [(Request(4, 420), 0)]


def test_a_hole_too_short_for_a_task_is_left() -> None:
    crafted = shapes(situation(with_hole(4, 5), 2, 6 * MINUTE, requests=1))
    assert crafted == [(Request(2, 360), 5 * MINUTE + 86400)]


def test_the_worst_first_slot_is_exchanged_while_the_throughput_improves() -> None:
    """One allowed request: 1 processor at once finishes 2 tasks in 20 m; 16 in 10 minutes' time far more."""
    queue = site(16, RunningJob("local", 15, 10 * MINUTE))
    assert shapes(situation(queue, 1000, 10 * MINUTE, requests=1, max_tr=20 * MINUTE)) == [
        (Request(16, 20 * MINUTE), 10 * MINUTE)
    ]


def test_a_small_slot_now_stays_where_a_large_one_comes_too_late() -> None:
    """1 task per 10 m now against 16 tasks per 10 m after more than a day."""
    queue = with_hole(1, 10)
    assert shapes(situation(queue, 1000, 10 * MINUTE, requests=1, max_tr=10 * MINUTE)) == [
        (Request(1, 10 * MINUTE), 0)
    ]


def test_no_more_processors_than_tasks_and_the_worst_request_gives_first() -> None:
    """6 + 6 + 4 processors for 9 tasks: the 4 would take longest and go, then one of the 6 gives 3."""
    crafted = shapes(situation(site(16), 9, 6 * MINUTE, requests=3, max_proc=6))
    assert crafted == [(Request(6, 360), 0), (Request(3, 360), 0)]


def test_of_two_equal_slots_the_earlier_one_stays() -> None:
    """6 tasks are finished in 12 m by 4 processors now as by 6 in 6 m."""
    queue = site(16, RunningJob("local", 12, 6 * MINUTE), PendingJob("next", 4, 86400, 6 * MINUTE))
    assert shapes(situation(queue, 6, 6 * MINUTE, requests=2)) == [(Request(4, 720), 0)]


def test_what_the_hole_leaves_is_asked_for_behind_it() -> None:
    """6 tasks, 4 processors for 6 m, then 2: both are taken."""
    queue = site(16, RunningJob("local", 12, 6 * MINUTE), PendingJob("next", 14, 86400, 6 * MINUTE))
    crafted = shapes(situation(queue, 6, 6 * MINUTE, requests=2))
    assert crafted == [(Request(4, 360), 0), (Request(2, 360), 360)]


def test_no_more_time_than_the_tasks_need() -> None:
    """19 tasks on 16 processors need two rounds of a slot that is free for ever."""
    assert shapes(situation(site(16), 19, 6 * MINUTE, requests=3)) == [(Request(16, 720), 0)]


def test_a_request_that_would_find_no_task_is_dropped() -> None:
    """8 tasks: 4 processors finish them in 12 m, before the others even get free in 30."""
    queue = site(8, RunningJob("local", 4, 30 * MINUTE))
    assert shapes(situation(queue, 8, 6 * MINUTE, requests=3)) == [(Request(4, 720), 0)]


def test_every_request_is_expected_to_finish_a_task() -> None:
    """5 tasks on 3 + 1 processors in two rounds: the last one runs on one of the 3."""
    crafted = adaptive(situation(site(4), 5, 6 * MINUTE, requests=2, max_proc=3))
    assert [(each.request, each.tasks) for each in crafted] == [(Request(3, 720), 4), (Request(1, 360), 1)]


def test_it_goes_on_while_requests_are_allowed_and_tasks_remain() -> None:
    """One slot takes 4 × 60 m; what remains follows on the same processors."""
    crafted = shapes(situation(site(4), 1000, 30 * MINUTE, requests=3, max_proc=4, max_tr=3600))
    assert crafted == [(Request(4, 3600), 0), (Request(4, 3600), 3600), (Request(4, 3600), 7200)]


def test_tasks_of_several_processors_and_whole_nodes() -> None:
    assert shapes(situation(site(30), 100, 3600, requests=1, per_task=4, max_tr=3600)) == [
        (Request(28, 3600), 0)
    ]
    assert shapes(situation(site(64), 10, 3600, requests=1, per_task=4, granularity=16)) == [
        (Request(48, 3600), 0)
    ]


def test_an_estimate_beyond_max_tr_asks_for_all_of_it_and_says_so() -> None:
    crafted = adaptive(situation(site(4), 2, 7200, max_tr=3600))
    assert [each.request for each in crafted] == [Request(2, 3600)]
    assert crafted[0].reason.endswith("; a task may need 2h, but a request may last 1h at most")


@pytest.mark.parametrize(
    ("queue", "per_task"),
    [
        (site(4), 5),
        (site(0), 1),
        (site(4, RunningJob("for ever", 4, math.inf)), 1),
        (site(4, RunningJob("a", 4, 50), PendingJob("for ever", 4, math.inf)), 1),
    ],
)
def test_nothing_where_nothing_fits(queue: QueueState, per_task: int) -> None:
    assert adaptive(situation(queue, 10, 60, per_task=per_task)) == []


def test_nothing_without_tasks_or_allowed_requests() -> None:
    given = situation(site(4), 10, 60)
    assert adaptive(msgspec.structs.replace(given, remaining_tasks=0)) == []
    assert adaptive(msgspec.structs.replace(given, allowed_requests=0)) == []


def inserted(queue: QueueState, crafted: list[CraftedRequest]) -> QueueState:
    """The queue in which our requests run, or are planned, where they were predicted."""
    ours = [
        PendingJob(f"ours{i}", each.request.p, each.request.tr, each.predicted_start)
        for i, each in enumerate(crafted)
    ]
    return msgspec.structs.replace(queue, pending=(*ours, *queue.pending))


@examples(400)
@given(situations(planned=True))
def test_the_requests_fit_into_the_profile_together(given: CraftingSituation) -> None:
    profile = availability(given.queue)
    for each in adaptive(given):
        assert each.predicted_start is not None
        profile.take(each.predicted_start, each.request.tr, each.request.p)


@examples(400)
@given(situations())
def test_no_job_of_the_queue_starts_later_because_of_ours(given: CraftingSituation) -> None:
    before = schedule(given.queue).starts
    after = schedule(inserted(given.queue, adaptive(given))).starts
    for job, start in before.items():
        assert after[job] <= start


@examples(400)
@given(situations(planned=True))
def test_the_limits_and_the_rules_hold(given: CraftingSituation) -> None:
    crafted = adaptive(given)
    rules, shape = given.shape.rules, given.shape
    assert len(crafted) <= given.allowed_requests
    for each in crafted:
        assert 0 < each.request.p <= min(rules.limits.max_proc, given.queue.processors)
        assert each.request.p % shape.unit.processors == 0
        assert each.request.p % rules.granularity == 0
        assert 0 < each.request.tr <= rules.limits.max_tr
        assert each.request.tr % rules.time_resolution == 0 or each.request.tr == rules.limits.max_tr
        assert shape.rounds(each.request.tr) >= 1 or each.request.tr == rules.limits.max_tr
        assert 0 < each.tasks <= shape.slots(each.request.p) * max(1, shape.rounds(each.request.tr))
    assert sum(each.tasks for each in crafted) <= given.remaining_tasks


@given(situations(planned=True))
def test_all_tasks_are_provided_for_unless_a_limit_or_the_queue_forbids(given: CraftingSituation) -> None:
    crafted = adaptive(given)
    provided = sum(each.tasks for each in crafted)
    if provided < given.remaining_tasks and len(crafted) < given.allowed_requests:
        shape = given.shape
        left = availability(inserted(given.queue, crafted))
        tr = shape.tr_for(1, shape.rules.limits.max_tr)
        least = round_up(tr, shape.rules.time_resolution) + shape.rules.slot_margin
        assert not shape.widest or left.earliest_start(shape.unit.processors, least) == math.inf
