"""Whole decisions: a pilot for each hole, the rest in the queue, none ended that runs."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import (
    Demand,
    Funds,
    PilotView,
    Reshape,
    SiteRules,
    SiteState,
    SubmitRequest,
    Threat,
    Withdraw,
    Withhold,
)
from adaptor.model import Allowed, Bound, Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from adaptor.runtimes.known import KnownRuntimes
from tests.runtimes.known import known_runtimes

LIMITS = Limits(max_pending_requests=4, max_pilots=200, max_proc=64, max_tr=36_000)
RULES = SiteRules(limits=LIMITS)
UNKNOWN, KNOWN = known_runtimes(), known_runtimes(finished=100, mean=500.0, longest=600.0)
SINGLE = TaskSize()
ENDLESS = Funds(work=math.inf)
NO_THREAT = Threat()
FUNDS = st.just(ENDLESS) | st.builds(
    Funds,
    work=st.floats(0, 1e6),
    unit=st.sampled_from([1, 60, 3600]),
    grace=st.sampled_from([0, 45]),
    in_parts=st.booleans(),
)


def view(
    *pilots: PilotView,
    waiting: int = 100,
    times: KnownRuntimes = UNKNOWN,
    running: tuple[RunningJob, ...] = (),
    pending: tuple[PendingJob, ...] = (),
    rules: SiteRules = RULES,
    processors: int = 64,
    most: float = math.inf,
    task: TaskSize = SINGLE,
    funds: Funds = ENDLESS,
    threat: Threat = NO_THREAT,
) -> SiteState:
    runtime = times.longest or 60.0
    demand = Demand(
        waiting=waiting,
        runtime=runtime,
        shortest=runtime,
        times=times,
        most=most,
        why_most="no more",
        task=task,
        funds=funds,
        threat=threat,
    )
    return SiteState(
        now=0.0,
        queue=QueueState(now=0.0, processors=processors, running=running, pending=pending),
        rules=rules,
        heuristic="elastic",
        requests=pilots,
        demands=(demand,),
    )


def queued(id: int, p: int = 1, tr: int = 36_000) -> PilotView:
    return PilotView(
        id=id, job=f"ours{id}", state=PilotState.QUEUED, request=Request(p, tr), submitted=-100.0
    )


def asked(seen: SiteState) -> Counter[tuple[int, int, bool]]:
    """By processors, seconds and whether it starts now."""
    return Counter(
        (each.crafted.request.p, each.crafted.request.tr, each.crafted.predicted_start == 0.0)
        for each in plan(seen)
        if isinstance(each, SubmitRequest)
    )


def test_each_free_processor_gets_a_pilot_as_long_as_its_hole() -> None:
    busy = (RunningJob("1", 48, 7200.0),)
    later = (PendingJob("2", 60, 3600.0, 7200.0),)
    found = asked(view(running=busy, pending=later, times=UNKNOWN))
    assert found[1, 7200, True] == 12
    assert found[1, 36_000, True] == 4
    assert sum(count for (_, _, now), count in found.items() if not now) == 84


def test_no_more_pilots_than_tasks() -> None:
    assert sum(asked(view(waiting=7)).values()) == 7
    assert sum(asked(view(waiting=700)).values()) == LIMITS.max_pilots


def test_known_tasks_ask_for_no_more_than_they_can_use() -> None:
    found = asked(view(waiting=64, times=KNOWN))
    ((p, tr, now),) = found
    assert (p, now) == (1, True)
    assert tr < 12_000


def test_where_few_are_allowed_they_are_wide() -> None:
    few = msgspec.structs.replace(RULES, limits=msgspec.structs.replace(LIMITS, max_pilots=3))
    found = asked(view(rules=few, times=KNOWN))
    assert sum(found.values()) <= 3
    assert max(p for p, _, _ in found) > 8


def test_tasks_whose_pilots_are_about_to_start_get_no_others() -> None:
    """Where something unknown keeps them waiting, others would be made and withdrawn at each look."""
    ours = [queued(id) for id in range(1, 13)]
    pending = tuple(PendingJob(each.queued_as, 1, 36_000.0) for each in ours)
    assert not asked(view(*ours, waiting=12, pending=pending))
    assert asked(view(*ours, waiting=20, pending=pending)) == {(1, 36_000, True): 8}


@pytest.mark.parametrize("allowed", [Allowed(min_proc=4), Allowed(min_proc=3, min_parts=4)])
@pytest.mark.parametrize("task", [1, 2])
def test_no_pilot_is_narrower_than_the_scheduler_takes(allowed: Allowed, task: int) -> None:
    seen = view(waiting=80, task=TaskSize(processors=task), times=KNOWN, processors=32)
    assert seen.queue is not None
    queue = msgspec.structs.replace(seen.queue, allowed=allowed)
    found = asked(msgspec.structs.replace(seen, queue=queue))
    width = 4 * task if allowed.min_parts > 1 else 4
    assert {p for p, _, now in found if now} == {width}
    assert all(p % width == 0 for p, _, _ in found)
    assert sum(p * count for (p, _, now), count in found.items() if now) == 32


def test_below_the_tasks_pilots_are_wider_in_the_queue() -> None:
    rules = msgspec.structs.replace(RULES, limits=msgspec.structs.replace(LIMITS, max_pilots=50))
    full = (RunningJob("1", 640, 7200.0),)
    found = asked(view(waiting=1000, running=full, rules=rules, processors=640, times=KNOWN))
    assert sum(found.values()) <= 50
    assert max(p for p, _, _ in found) == 13, "the machine over fifty pilots"


@pytest.mark.parametrize(("looks", "now"), [(None, 12), (100, 12), (20, 0)])
def test_no_pilot_is_made_for_a_hole_if_backfilling_does_not_look_at_it(looks: int | None, now: int) -> None:
    """It would wait behind the others, and be withdrawn at the next look for one that fits what is left."""
    ours = [queued(id) for id in range(1, 21)]
    pending = (PendingJob("2", 64, 3600.0, 7200.0),)
    busy = (RunningJob("1", 52, 7200.0),)
    rules = msgspec.structs.replace(RULES, backfilled=looks)
    found = asked(view(*ours, waiting=500, running=busy, pending=pending, rules=rules))
    assert sum(count for (_, _, starts), count in found.items() if starts) == now
    assert sum(found.values()) == LIMITS.max_pilots - 20


def test_a_hole_that_queued_pilots_fit_gets_no_other_one() -> None:
    ours = [queued(id, tr=3600) for id in range(1, 101)]
    pending = tuple(PendingJob(each.queued_as, 1, 3600.0) for each in ours)
    (withheld,) = plan(view(*ours, pending=pending, times=KNOWN))
    assert isinstance(withheld, Withhold)
    assert "100 queued pilots wait to start, enough for the 100 tasks" in withheld.reason


def test_a_hole_too_short_for_what_waits_gets_a_pilot_of_its_own() -> None:
    ours = [queued(id) for id in range(1, 101)]
    busy = RunningJob("1", 60, 3600.0)
    pending = (
        PendingJob("2", 64, 3600.0, 3600.0),
        *(PendingJob(each.queued_as, 1, 36_000.0) for each in ours),
    )
    assert asked(view(*ours, running=(busy,), pending=pending, times=KNOWN)) == {(1, 3600, True): 4}


@pytest.mark.parametrize("most", [math.inf, 0])
def test_queued_pilots_make_room_for_a_hole_where_a_limit_is_used_up(most: float) -> None:
    """With `--max-running` the processors of queued pilots count too: idle nodes do not wait for them."""
    ours = [queued(id) for id in range(1, 201)]
    busy = RunningJob("1", 60, 3600.0)
    pending = (
        PendingJob("2", 64, 3600.0, 3600.0),
        *(PendingJob(each.queued_as, 1, 36_000.0) for each in ours),
    )
    decided = plan(view(*ours, waiting=300, running=(busy,), pending=pending, times=KNOWN, most=most))
    withdrawn = [each.pilot for each in decided if isinstance(each, Withdraw)]
    assert withdrawn == [200, 199, 198, 197]


def test_queued_pilots_make_no_room_where_the_scheduler_lets_nothing_start() -> None:
    """What a limit keeps waiting would wait again in the place of those that were withdrawn."""
    ours = [queued(id) for id in range(1, 5)]
    seen = view(*ours, waiting=4, most=0)
    demand = msgspec.structs.replace(seen.demands[0], withheld=True)
    assert not [
        each
        for each in plan(msgspec.structs.replace(seen, demands=(demand,)))
        if isinstance(each, Withdraw | SubmitRequest)
    ]


def test_queued_pilots_without_a_task_are_withdrawn_youngest_first() -> None:
    ours = [queued(id) for id in range(1, 21)]
    full = (RunningJob("1", 64, 7200.0),)
    decided = plan(view(*ours, waiting=15, running=full, times=KNOWN))
    assert [each.pilot for each in decided if isinstance(each, Withdraw)] == [20, 19, 18, 17, 16]
    assert asked(view(*ours, waiting=20, running=full, times=KNOWN)) == {}


def test_pilots_for_holes_stay_until_the_scheduler_starts_them() -> None:
    older = [queued(id) for id in range(1, 101)]
    busy, later = (RunningJob("1", 54, 7200.0),), (PendingJob("2", 60, 36_000.0, 7200.0),)
    first = asked(view(*older, running=busy, pending=later, times=KNOWN))
    assert [(p, starts) for p, _, starts in first.elements()] == [(1, True)] * 6
    tr = next(iter(first))[1]
    seen = view(
        *older, *(queued(id, tr=tr) for id in range(101, 107)), running=busy, pending=later, times=KNOWN
    )
    assert not [each for each in plan(seen) if isinstance(each, SubmitRequest | Withdraw)]


def test_pilots_that_are_about_to_start_go_where_running_ones_have_a_slot_for_each_task() -> None:
    idle = PilotView(
        id=9, job="ours9", state=PilotState.RUNNING, request=Request(8, 36_000), started=0.0, ends=36_000.0
    )
    decided = plan(view(queued(1), queued(2), idle, waiting=5, times=KNOWN))
    assert {each.pilot for each in decided if isinstance(each, Withdraw)} == {1, 2}


def test_few_pilots_share_a_large_hole() -> None:
    limits = msgspec.structs.replace(LIMITS, max_pilots=100, max_proc=512)
    busy = (RunningJob("1", 312, 36_000.0),)
    found = asked(view(waiting=1000, running=busy, rules=SiteRules(limits=limits), processors=512))
    now = Counter(p for p, _, starts in found.elements() if starts)
    assert now == {4: 50}
    assert max(p for p, _, starts in found.elements() if not starts) <= 6


@pytest.mark.parametrize(
    ("longest", "pilots"),
    [pytest.param(600.0, {4: 50}, id="alike"), pytest.param(2500.0, {1: 100}, id="one may be long")],
)
def test_wide_pilots_have_no_more_slots_than_stay_busy_until_the_longest_task_ends(
    longest: float, pilots: dict[int, int]
) -> None:
    limits = msgspec.structs.replace(LIMITS, max_pilots=100, max_proc=512)
    busy = (RunningJob("1", 312, 36_000.0),)
    times = known_runtimes(finished=100, mean=500.0, longest=longest)
    seen = view(waiting=400, running=busy, rules=SiteRules(limits=limits), processors=512, times=times)
    assert Counter(p for p, _, starts in asked(seen).elements() if starts) == pilots


def test_the_last_pilot_that_is_left_is_as_narrow_as_the_others() -> None:
    limits = msgspec.structs.replace(LIMITS, max_pilots=100)
    full = (RunningJob("1", 64, 7200.0),)
    ours = [queued(id) for id in range(1, 100)]
    found = asked(view(*ours, waiting=1000, running=full, rules=SiteRules(limits=limits)))
    assert sum(found.values()) == 1
    assert all(p <= 2 for p, _, _ in found)


def test_where_nothing_waits_no_pilot_stays_queued() -> None:
    ours = [queued(id) for id in range(1, 6)]
    demand = Demand(waiting=0, running=3, runtime=600.0, shortest=600.0, times=KNOWN)
    seen = msgspec.structs.replace(view(*ours), demands=(demand,), queue=None)
    assert {each.pilot for each in plan(seen) if isinstance(each, Withdraw)} == {1, 2, 3, 4, 5}


def test_queued_pilots_of_unknown_tasks_are_shortened_when_they_are_known_one_first() -> None:
    busy = (RunningJob("full", 60, 40_000.0), RunningJob("soon", 4, 3000.0))
    later = (PendingJob("wide", 4, 50_000.0, planned_start=20_000.0),)
    ours = [queued(id) for id in range(1, 30)]

    def shortened(*pilots: PilotView) -> list[int]:
        rules = msgspec.structs.replace(RULES, may_reshape=True)
        seen = view(*pilots, waiting=29, times=KNOWN, running=busy, pending=later, rules=rules)
        decided = plan(seen)
        found = [each for each in decided if isinstance(each, Reshape)]
        assert all(each.crafted.request.tr < 18_000 for each in found)
        return [each.pilot for each in found]

    assert shortened(*ours) == [1]
    first = msgspec.structs.replace(ours[0], reshaped=-10.0, request=Request(1, 3000))
    assert shortened(first, *ours[1:]) == [2, 3, 4, 5, 6, 7, 8, 9]
    refused = msgspec.structs.replace(ours[0], fixed=True)
    assert shortened(refused, *ours[1:]) == []


def test_where_shorter_pilots_start_no_sooner_they_keep_their_walltime() -> None:
    full = (RunningJob("full", 64, 40_000.0),)
    rules = msgspec.structs.replace(RULES, may_reshape=True)
    ours = [queued(id) for id in range(1, 30)]
    decided = plan(view(*ours, waiting=29, times=KNOWN, running=full, rules=rules))
    assert not any(isinstance(each, Reshape) for each in decided)


def threatened(*ours: PilotView, tasks: int, running: tuple[RunningJob, ...] = ()) -> SiteState:
    demand = Demand(
        running=3,
        runtime=600.0,
        shortest=600.0,
        times=KNOWN,
        threat=Threat(tasks=tasks, enough=5000.0),
    )
    return msgspec.structs.replace(view(*ours, running=running), demands=(demand,))


def test_running_tasks_that_may_be_cut_get_pilots_long_enough_for_a_copy() -> None:
    short = (RunningJob("free soon", 62, 4000.0),)
    found = asked(threatened(tasks=2, running=short))
    made = [each for each in plan(threatened(tasks=2, running=short)) if isinstance(each, SubmitRequest)]
    assert all("for tasks that their pilots may cut" in each.crafted.reason for each in made)
    assert sum(found.values()) == 2
    assert all(tr >= 5000 and now for _, tr, now in found), "two processors are free"
    full = (RunningJob("full", 64, 4000.0),)
    waits = asked(threatened(tasks=2, running=full))
    assert sum(waits.values()) == 2
    assert not any(now for _, _, now in waits)


def test_pilots_for_copies_are_as_many_as_may_be_cut() -> None:
    ours, full = [queued(id) for id in range(1, 6)], (RunningJob("full", 64, 4000.0),)
    decided = plan(threatened(*ours, tasks=2, running=full))
    assert {each.pilot for each in decided if isinstance(each, Withdraw)} == {3, 4, 5}
    assert len(decided) == 3
    assert plan(threatened(*ours[:2], tasks=2, running=full)) == []


def test_tasks_of_several_processors_have_pilots_of_their_width() -> None:
    found = asked(view(waiting=10, task=TaskSize(processors=8), times=KNOWN))
    assert {p for p, _, _ in found} == {8}


def test_a_bag_whose_aims_say_how_many_processors_it_gets_has_few_wide_requests() -> None:
    seen = view(times=KNOWN)
    paced = msgspec.structs.replace(seen.demands[0], bag=7, paced=True)
    found = asked(msgspec.structs.replace(seen, demands=(paced,)))
    assert 0 < sum(found.values()) <= LIMITS.max_pending_requests


def within(work: float, times: KnownRuntimes = UNKNOWN, waiting: int = 100) -> Counter[tuple[int, int, bool]]:
    """What a bag asks for with this number of processors times seconds."""
    seen = view(times=times, waiting=waiting)
    paying = msgspec.structs.replace(seen.demands[0], bag=7, funds=Funds(work=work))
    return asked(msgspec.structs.replace(seen, demands=(paying,)))


def test_a_budget_shortens_pilots_before_there_are_fewer() -> None:
    """Each gives back what it does not use, so a budget that does not bind makes no bag later."""
    found = within(64 * 1000.0)
    assert found == {(1, 1000, True): 64}


def test_a_budget_that_is_too_small_for_all_has_pilots_long_enough_for_a_task() -> None:
    found = within(10 * 700.0, KNOWN)
    ((_, tr, _),) = found
    assert tr >= KNOWN.longest
    assert sum(found.values()) * tr <= 10 * 700


def with_work_left(seen: SiteState, minutes: float) -> SiteState:
    assert seen.queue is not None
    allowed = Allowed(work_left=Bound(60 * minutes, "GrpTRESRunMins=cpu of account lab"))
    return msgspec.structs.replace(seen, queue=msgspec.structs.replace(seen.queue, allowed=allowed))


def test_what_running_jobs_may_take_together_is_divided_among_pilots() -> None:
    """Where all would last 10 hours, a limit of 200 processor minutes lets each of 10 last 20."""
    found = asked(with_work_left(view(waiting=10), 200))
    assert found == {(1, 1200, True): 10}


@pytest.mark.parametrize("state", [PilotState.QUEUED, PilotState.SUBMITTING])
def test_what_queued_pilots_will_take_is_not_given_to_others(state: PilotState) -> None:
    there = msgspec.structs.replace(queued(1, tr=3600), state=state)
    seen = with_work_left(view(there, waiting=30, processors=64), 60)
    assert not asked(seen)
    (why,) = [each.reason for each in plan(seen) if isinstance(each, Withhold)]
    assert "GrpTRESRunMins=cpu of account lab" in why


def test_one_pilot_waits_where_the_jobs_of_others_may_take_all() -> None:
    assert sum(asked(with_work_left(view(waiting=10), 0)).values()) == 1


@pytest.mark.parametrize("heuristic", ["static", "adaptive", "completion"])
def test_requests_of_every_heuristic_keep_within_what_running_jobs_may_take(heuristic: str) -> None:
    limits = Limits(max_pending_requests=4, max_proc=8, max_tr=3600)
    seen = msgspec.structs.replace(
        with_work_left(view(waiting=100, rules=SiteRules(limits=limits)), 1000), heuristic=heuristic
    )
    made = [each.crafted.request.area for each in plan(seen) if isinstance(each, SubmitRequest)]
    assert made
    assert sum(made) <= 60_000


def test_without_money_one_pilot_is_asked_for_so_that_it_is_said_what_is_missing() -> None:
    assert list(within(10.0, KNOWN).values()) == [1]


def test_what_a_budget_pays_for_at_first_need_not_be_a_whole_walltime() -> None:
    """What is left is divided among those that the machine can run at a time."""
    seen = view(waiting=200, processors=64, funds=Funds(work=64 * 1000.0, in_parts=True))
    found = [each.crafted for each in plan(seen) if isinstance(each, SubmitRequest)]
    assert {(each.request.tr, each.paid) for each in found} == {(36_000, 1000)}
    assert len(found) == 64


def test_pilots_that_the_budget_pays_for_wholly_are_not_paid_in_parts() -> None:
    seen = view(waiting=4, processors=64, funds=Funds(work=1e9, in_parts=True))
    assert {each.crafted.paid for each in plan(seen) if isinstance(each, SubmitRequest)} == {None}


@st.composite
def sites(draw: st.DrawFn) -> SiteState:
    finished = draw(st.integers(0, 50))
    mean = draw(st.floats(1, 5000))
    start = draw(st.none() | st.floats(-20_000, 0))
    times = known_runtimes(
        finished=finished,
        mean=mean if finished else 0.0,
        longest=mean * draw(st.floats(1, 5)) if finished else 0.0,
        cut=draw(st.integers(0, 3)),
        not_enough=draw(st.floats(0, 9000)),
        mean_start=start,
        first_start=start,
    )
    states = st.sampled_from([PilotState.QUEUED, PilotState.RUNNING, PilotState.SUBMITTING])
    pilots = tuple(
        PilotView(
            id=number,
            job=None if state is PilotState.SUBMITTING else f"ours{number}",
            state=state,
            request=Request(draw(st.integers(1, 4)), draw(st.integers(60, 36_000))),
            started=-60.0 if state is PilotState.RUNNING else None,
            ends=draw(st.floats(1, 30_000)) if state is PilotState.RUNNING else None,
            submitted=-100.0,
        )
        for number, state in enumerate(draw(st.lists(states, max_size=12)), 1)
    )
    jobs = draw(st.lists(st.tuples(st.integers(1, 40), st.floats(1, 50_000)), max_size=4))
    running = tuple(RunningJob(f"r{index}", p, end) for index, (p, end) in enumerate(jobs))
    running += tuple(
        RunningJob(each.queued_as, each.request.p, each.ends or 1.0)
        for each in pilots
        if each.state is PilotState.RUNNING
    )
    pending = tuple(
        PendingJob(f"p{index}", draw(st.integers(1, 64)), draw(st.floats(60, 40_000)))
        for index in range(draw(st.integers(0, 4)))
    )
    pending += tuple(
        PendingJob(each.queued_as, each.request.p, float(each.request.tr))
        for each in pilots
        if each.state is PilotState.QUEUED
    )
    limits = msgspec.structs.replace(LIMITS, max_pilots=draw(st.sampled_from([50, 60, 200])))
    rules = SiteRules(
        limits=limits,
        pad=draw(st.sampled_from([0.0, 30.0])),
        time_resolution=draw(st.sampled_from([1, 60])),
        may_withdraw=draw(st.booleans()),
    )
    return view(
        *pilots,
        waiting=draw(st.integers(0, 300)),
        threat=Threat(tasks=draw(st.integers(0, 5)), enough=draw(st.floats(0, 40_000))),
        times=times,
        running=running,
        pending=pending,
        rules=rules,
        most=draw(st.sampled_from([math.inf, math.inf, 0, 5])),
        funds=draw(FUNDS),
    )


@given(sites())
def test_all_rules_of_the_site_hold_and_no_running_pilot_ends(seen: SiteState) -> None:
    decided = plan(seen)
    demand, limits = seen.demands[0], seen.rules.limits
    assert decided or not demand.waiting, "tasks wait: something is done, or said"
    issued = [each.crafted for each in decided if isinstance(each, SubmitRequest)]
    assert len(issued) <= limits.max_pilots - len(seen.requests)
    assert sum(each.tasks > 0 for each in issued) == len(issued)
    for each in issued:
        assert 0 < each.request.p <= limits.max_proc
        assert 0 < each.request.tr <= limits.max_tr
    assert sum(each.request.p for each in issued) <= demand.most
    left = demand.funds
    for each in issued:
        left = left.after(each.request.p, each.request.tr, each.paid)
    assert left.work >= 0 or len(issued) == 1
    withdrawn = {each.pilot for each in decided if isinstance(each, Withdraw)}
    assert withdrawn <= {pilot.id for pilot in seen.requests if pilot.state is PilotState.QUEUED}
    if not seen.rules.may_withdraw:
        assert not any(isinstance(each, Withdraw) and each.recraft for each in decided)
