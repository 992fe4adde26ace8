"""What holds at sites and with queues that are not as they should be."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import availability
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    SiteRules,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from tests.crafting.planner_views import views
from tests.examples import examples
from tests.runtimes.known import known_runtimes

UNKNOWN = known_runtimes()
LIMITS = Limits(max_pending_requests=6, max_proc=64, max_tr=64_800)


def site(
    queue: QueueState,
    times: KnownRuntimes = UNKNOWN,
    runtime: float = 60.0,
    waiting: int = 1000,
    **limits: int,
) -> SiteState:
    return SiteState(
        now=queue.now,
        queue=queue,
        rules=SiteRules(limits=msgspec.structs.replace(LIMITS, **limits), time_resolution=60, pad=30.0),
        heuristic="completion",
        demands=(Demand(waiting=waiting, runtime=runtime, shortest=runtime, times=times),),
    )


def machine(*running: RunningJob, pending: tuple[PendingJob, ...] = ()) -> QueueState:
    return QueueState(now=0.0, processors=64, running=running, pending=pending)


def issued(view: SiteState) -> list[SubmitRequest]:
    return [each for each in plan(view) if isinstance(each, SubmitRequest)]


def within_limits(view: SiteState) -> None:
    limits = view.rules.limits
    found = issued(view)
    assert found or any(isinstance(each, Withhold) for each in plan(view))
    assert len(found) <= limits.max_pending_requests
    for each in found:
        assert 0 < each.crafted.request.p <= limits.max_proc
        assert 0 < each.crafted.request.tr <= limits.max_tr
        assert each.crafted.reason


FULL = RunningJob("1", 60, 7200.0)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_pending_requests": 1},
        {"max_proc": 1},
        {"max_tr": 60},
        {"max_pending_requests": 1, "max_proc": 1},
    ],
    ids=str,
)
def test_narrow_limits_hold(limits: dict[str, int]) -> None:
    within_limits(site(machine(FULL), **limits))
    assert issued(site(machine(FULL), **limits))


def test_tasks_longer_than_any_request_get_the_longest_one() -> None:
    found = issued(site(machine(), runtime=9000.0, max_tr=3600))
    assert {each.crafted.request.tr for each in found} == {3600}


@pytest.mark.parametrize("end", [0.0, -100.0, math.inf], ids=["now", "long ago", "never"])
def test_jobs_may_end_at_once_or_never(end: float) -> None:
    within_limits(site(machine(RunningJob("1", 60, end))))


def test_a_full_machine_that_never_comes_free_is_told() -> None:
    (told,) = plan(site(machine(RunningJob("1", 64, math.inf))))
    assert isinstance(told, Withhold)


def test_planned_starts_that_contradict_each_other_are_borne() -> None:
    """More processors at once than there are, and starts that are past: a scheduler between two plans."""
    broken = tuple(PendingJob(str(job), 64, 3600.0, planned_start=100.0 * job - 500.0) for job in range(20))
    within_limits(site(machine(FULL, pending=broken)))


def test_five_thousand_queued_jobs() -> None:
    pending = tuple(
        PendingJob(str(job), 1 + job * 7 % 64, 60.0 * (1 + job * 13 % 700)) for job in range(5000)
    )
    within_limits(site(machine(FULL, pending=pending)))


@pytest.mark.parametrize("mean", [0.01, 1.0, 100.0, 10_000.0, 60_000.0])
@pytest.mark.parametrize("spread", [1.0, 4.0, 1000.0])
def test_runtimes_over_six_orders_of_magnitude(mean: float, spread: float) -> None:
    """Two kinds in one bag among them: most are short, and some a thousand times longer."""
    longest = min(64_000.0, mean * spread)
    known = known_runtimes(finished=100, mean=mean, longest=longest)
    within_limits(site(machine(FULL), times=known, runtime=max(1.0, longest)))


@pytest.mark.parametrize("mean", [0.5, 60.0, 1e6])
@pytest.mark.parametrize("factor", [2.0, 50.0])
def test_whatever_earlier_bags_took(mean: float, factor: float) -> None:
    kind = EarlierTasks(kind="fit.py", tasks=3, mean=mean, factor=factor, low=mean, high=mean)
    within_limits(site(machine(FULL), times=known_runtimes(earlier=kind)))
    within_limits(
        site(machine(FULL), times=known_runtimes(earlier=kind, not_enough=30_000.0), runtime=60_000.0)
    )


def test_a_known_kind_gets_other_requests_than_an_unknown_one() -> None:
    """Four processors are free now for an hour, all of them later: short tasks start now, long ones wait."""
    behind = (PendingJob("2", 64, 3600.0, planned_start=3600.0),)
    queue = machine(RunningJob("1", 60, 3600.0), pending=behind)

    def first(mean: float) -> float | None:
        kind = EarlierTasks(kind="fit.py", tasks=9, mean=mean, factor=2.0, low=mean, high=mean)
        view = site(queue, times=known_runtimes(earlier=kind), waiting=20, max_pending_requests=1)
        return issued(view)[0].crafted.predicted_start

    assert first(300.0) == 0.0
    assert first(20_000.0) == 7200.0


@examples(150)
@given(views(heuristics=("completion",)))
def test_the_same_view_gets_the_same_decisions(view: SiteState) -> None:
    again = msgspec.structs.replace(view, requests=tuple(view.requests), demands=tuple(view.demands))
    assert plan(view) == plan(again)


@examples(150)
@given(views(heuristics=("completion",)), st.booleans())
def test_no_planned_job_starts_later_for_us(view: SiteState, one: bool) -> None:
    """The requests fit, all of them, into what running and planned jobs leave free at the foretold starts."""
    view = msgspec.structs.replace(view, requests=(), demands=view.demands[:1] if one else view.demands)
    if view.queue is None:
        return
    free = availability(view.queue).copy()
    for each in issued(view):
        request, start = each.crafted.request, each.crafted.predicted_start
        start = free.earliest_start(request.p, request.tr) if start is None else start
        free.take(start, request.tr, request.p)  # ValueError: it would delay somebody


@examples(100)
@given(views(heuristics=("completion",)))
def test_a_site_that_forbids_withdrawing_loses_no_useful_request(view: SiteState) -> None:
    rules = msgspec.structs.replace(view.rules, may_withdraw=False)
    for each in plan(msgspec.structs.replace(view, rules=rules)):
        assert not isinstance(each, Withdraw) or not each.recraft


def test_golden_one_free_hole() -> None:
    """64 processors are free for half an hour, then a job needs them for an hour; tasks of ten minutes."""
    queue = machine(pending=(PendingJob("1", 64, 3600.0, planned_start=1800.0),))
    known = known_runtimes(finished=10, mean=600.0, longest=600.0)
    (only,) = issued(site(queue, times=known, runtime=600.0, waiting=128))
    assert only.crafted.reason == "64 × 30m now: done about 00:20:33"  # at the latest, to half a per cent
    first, second = issued(site(queue, times=known, runtime=600.0, waiting=400, max_pending_requests=2))
    assert (first.crafted.request, first.crafted.predicted_start) == (Request(64, 1800), 0.0)
    assert first.crafted.reason == "64 × 30m now + 64 × 22m at 01:30:00: done about 01:50:54"
    assert second.crafted.predicted_start == 5400.0


def test_golden_nothing_is_asked_for_what_is_nearly_done() -> None:
    pilot = PilotView(
        id=1,
        job="a",
        state=PilotState.RUNNING,
        request=Request(64, 7200),
        started=-600.0,
        ends=6600.0,
        processors=64,
    )
    known = known_runtimes(finished=64, mean=600.0, longest=600.0, mean_start=0.0, first_start=0.0)
    view = site(machine(RunningJob("a", 64, 6600.0)), times=known, runtime=600.0, waiting=64)
    demand = msgspec.structs.replace(view.demands[0], running=64)
    (told,) = plan(msgspec.structs.replace(view, requests=(pilot,), demands=(demand,)))
    assert isinstance(told, Withhold)
    assert told.reason.startswith("no further request would end the 128 tasks sooner than about ")
