"""Whole decisions: what is asked for, when a place in the queue is given up, and how it is told."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.crafting.planner import plan
from adaptor.crafting.profile import Profile
from adaptor.crafting.reasons import end_about
from adaptor.crafting.serving import pilots_by_demand
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    SiteRules,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.crafting.submissions import SubmissionsLeft
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from adaptor.runtimes.known import KnownRuntimes
from tests.runtimes.known import known_runtimes

RULES = SiteRules(limits=Limits(max_pending_requests=3, max_proc=64, max_tr=36_000), time_resolution=60)
ALIKE = known_runtimes(finished=10, mean=600.0, longest=600.0)


def view(
    *pilots: PilotView,
    waiting: int = 100,
    times: KnownRuntimes = ALIKE,
    running: tuple[RunningJob, ...] = (),
    pending: tuple[PendingJob, ...] = (),
    rules: SiteRules = RULES,
    runtime: float = 600.0,
) -> SiteState:
    return SiteState(
        now=0.0,
        queue=QueueState(now=0.0, processors=64, running=running, pending=pending),
        rules=rules,
        heuristic="completion",
        requests=pilots,
        demands=(Demand(waiting=waiting, runtime=runtime, shortest=runtime, times=times),),
    )


def queued(id: int, p: int, tr: int, submitted: float = -1000.0) -> PilotView:
    return PilotView(
        id=id, job=f"ours{id}", state=PilotState.QUEUED, request=Request(p, tr), submitted=submitted
    )


def test_a_free_machine_is_used_at_once() -> None:
    issued = [each for each in plan(view()) if isinstance(each, SubmitRequest)]
    assert issued[0].crafted.predicted_start == 0.0
    assert issued[0].crafted.request.p == 64
    assert "now: done about" in issued[0].crafted.reason


def test_what_is_free_now_is_taken_beside_a_wide_request_later() -> None:
    half = RunningJob("1", 48, 7200.0)
    issued = [
        each.crafted for each in plan(view(running=(half,), waiting=1000)) if isinstance(each, SubmitRequest)
    ]
    assert issued[0].predicted_start == 0.0
    assert issued[0].request.p == 16
    assert any(each.predicted_start == 7200.0 and each.request.p >= 48 for each in issued)


def test_a_bag_that_is_refilled_gets_processors_for_what_is_to_come() -> None:
    """Its pilot runs 40 tasks of 1 s in 10 s, which no further one could better; 400 are another matter."""
    pilot = PilotView(
        id=1,
        job="1",
        state=PilotState.RUNNING,
        request=Request(4, 7200),
        submitted=-20.0,
        started=-10.0,
        ends=7190.0,
    )
    times = known_runtimes(finished=10, mean=1.0, longest=1.0, mean_start=-0.5, first_start=-0.5)
    seen = view(pilot, waiting=40, times=times, runtime=1.0)
    seen = msgspec.structs.replace(
        seen,
        rules=msgspec.structs.replace(RULES, pad=30.0),
        queue=QueueState(now=0.0, processors=16, running=(RunningJob("1", 4, 7190.0),), pending=()),
        demands=(bounded(seen.demands[0], running=4),),
    )
    (withheld,) = plan(seen)
    assert isinstance(withheld, Withhold)
    refilled = bounded(seen.demands[0], coming=360)
    (issued,) = plan(msgspec.structs.replace(seen, demands=(refilled,)))
    assert isinstance(issued, SubmitRequest)
    assert issued.crafted.request.p == 12
    assert "360 more tasks expected" in issued.crafted.reason


def test_unknown_tasks_are_tried_with_requests_of_several_lengths() -> None:
    issued = plan(view(times=known_runtimes(), runtime=60.0, running=(RunningJob("1", 60, 3000.0),)))
    lengths = {each.crafted.request.tr for each in issued if isinstance(each, SubmitRequest)}
    assert len(lengths) > 1


@pytest.mark.parametrize(("waiting", "tr"), [(1, 360), (64, 360), (150, 960)])
@pytest.mark.parametrize("told", [None, 300.0])
def test_a_request_is_no_longer_than_tasks_with_a_time_out_can_take(
    waiting: int, tr: int, told: float | None
) -> None:
    limited = known_runtimes(told=told, ended_after=300.0)
    rules = msgspec.structs.replace(RULES, pad=30.0)
    (issued,) = plan(view(waiting=waiting, times=limited, runtime=300.0, rules=rules))
    assert isinstance(issued, SubmitRequest)
    assert issued.crafted.request == Request(min(64, waiting), tr)


def unknown_reasons() -> list[str]:
    """Of all that is planned where nothing is known of the runtimes, and for a request given up there."""
    fresh = view(times=known_runtimes(), runtime=60.0, running=(RunningJob("1", 60, 3000.0),))
    issued = [each.crafted.reason for each in plan(fresh) if isinstance(each, SubmitRequest)]
    waits = msgspec.structs.replace(freed(), demands=(Demand(waiting=10, runtime=60.0, shortest=60.0),))
    return [*issued, *(each.reason for each in plan(waits) if isinstance(each, Withdraw))]


def test_no_end_is_named_where_nothing_is_known_of_the_runtimes() -> None:
    said = unknown_reasons()
    assert any("no end is known before tasks have ended" in reason for reason in said)
    assert any("keeping the queued 64 × 1h 40m would take longer" in reason for reason in said)
    assert not any("about" in reason for reason in said)


@pytest.mark.parametrize(("last", "said"), [(5000.0, "00:13:20 (00:01:40 to 01:23:20)"), (20_000.0, "")])
def test_an_end_that_may_be_anything_is_not_said(last: float, said: str) -> None:
    assert end_about(0.0, 800.0, [(100.0, 0.5), (last, 0.5)]) == said


@pytest.mark.parametrize("known", [{"told": 600.0}, {"finished": 3, "mean": 600.0, "longest": 900.0}])
def test_an_end_is_named_once_a_runtime_is_known(known: dict[str, float]) -> None:
    times = known_runtimes(**known)
    issued = [each for each in plan(view(times=times)) if isinstance(each, SubmitRequest)]
    assert issued
    assert all("done about" in each.crafted.reason for each in issued)


def freed() -> SiteState:
    """A request that waits for the end of a job, and a machine that has become free for another one."""
    late = PendingJob("ours7", 64, 6000, planned_start=30_000.0)
    return view(queued(7, 64, 6000), pending=(late,), rules=one_at_a_time())


def one_at_a_time() -> SiteRules:
    limits = msgspec.structs.replace(RULES.limits, max_pending_requests=1)
    return msgspec.structs.replace(RULES, limits=limits)


def test_a_place_in_the_queue_is_given_up_for_a_much_sooner_completion() -> None:
    (withdrawn,) = plan(freed())
    assert isinstance(withdrawn, Withdraw)
    assert withdrawn.recraft
    assert "keeping the queued 64 × 1h 40m would be done about" in withdrawn.reason


def test_no_place_is_given_up_for_holes_of_which_only_one_is_planned() -> None:
    """If holes like that of now came again and again, the bag would be done in half the time."""
    behind = PendingJob("2", 64, 20_000.0, planned_start=1200.0)
    ours = PendingJob("ours7", 64, 9660.0, planned_start=21_200.0)
    seen = view(
        queued(7, 64, 9660),
        waiting=1000,
        running=(RunningJob("1", 8, 1200.0),),
        pending=(behind, ours),
        rules=one_at_a_time(),
    )
    (kept,) = plan(seen)
    assert isinstance(kept, Withhold)


def test_of_several_queued_requests_the_largest_keeps_its_place() -> None:
    late = [PendingJob(f"ours{id}", 64, tr, start) for id, tr, start in ((7, 6000, 30_000), (8, 900, 36_000))]
    seen = view(queued(7, 64, 6000), queued(8, 64, 900), pending=tuple(late))
    limits = msgspec.structs.replace(RULES.limits, max_pending_requests=2)
    rules = msgspec.structs.replace(RULES, limits=limits)
    withdrawn = plan(msgspec.structs.replace(seen, rules=rules))
    assert [each.pilot for each in withdrawn if isinstance(each, Withdraw)] == [8]


def test_while_no_runtime_is_known_a_smaller_request_makes_room_before_one_of_the_largest() -> None:
    own = ((8, 64, 6000, 30_000), (7, 32, 6000, 36_000), (9, 64, 6000, 42_000))
    late = tuple(PendingJob(f"ours{id}", p, tr, start) for id, p, tr, start in own)
    found = plan(view(*(queued(id, p, tr) for id, p, tr, _ in own), pending=late, times=known_runtimes()))
    assert [each.pilot for each in found if isinstance(each, Withdraw)] == [7]


def test_a_request_that_never_starts_is_told_so() -> None:
    """What runs before it has no end."""
    holding = RunningJob("1", 64, float("inf"))
    seen = view(queued(7, 64, 6000, submitted=-5.0), running=(holding,), rules=one_at_a_time())
    pending = (PendingJob("ours7", 64, 6000),)
    assert seen.queue is not None
    seen = msgspec.structs.replace(seen, queue=msgspec.structs.replace(seen.queue, pending=pending))
    (withheld,) = plan(seen)
    assert isinstance(withheld, Withhold)
    assert withheld.reason.endswith(
        "; what is queued for the 100 tasks never starts, and no further request would either"
    )


def test_a_request_that_was_just_made_keeps_its_place() -> None:
    fresh = msgspec.structs.replace(freed(), requests=(queued(7, 64, 6000, submitted=-5.0),))
    assert isinstance(plan(fresh)[0], Withhold)


def test_a_request_that_was_just_made_and_has_missed_its_hole_may_make_room() -> None:
    """The queue showed planned starts of before the last job ended."""
    missed = msgspec.structs.replace(queued(7, 64, 6000, submitted=-5.0), predicted_start=-5.0)
    (withdrawn,) = plan(msgspec.structs.replace(freed(), requests=(missed,)))
    assert isinstance(withdrawn, Withdraw)
    waiting = msgspec.structs.replace(missed, predicted_start=30_000.0)
    assert isinstance(plan(msgspec.structs.replace(freed(), requests=(waiting,)))[0], Withhold)


def test_a_request_holds_a_task_that_was_cut_and_needs_more_than_the_others_took() -> None:
    """Else its worker leaves at once, and the same request is made again, for ever."""
    seen = view(waiting=1, runtime=1200.0, running=(RunningJob("1", 64, 3600.0),))
    (issued,) = [each for each in plan(seen) if isinstance(each, SubmitRequest)]
    assert issued.crafted.request.tr >= 1200 + RULES.pad


@pytest.mark.parametrize("waiting", [1, 5])
def test_no_request_is_made_for_tasks_that_others_hold_already(waiting: int) -> None:
    """Two slots end no task sooner than one, and each takes its part of a budget."""
    unlike = known_runtimes(finished=23, mean=600.0, longest=700.0)
    issued = [each for each in plan(view(waiting=waiting, times=unlike)) if isinstance(each, SubmitRequest)]
    assert sum(each.crafted.request.p for each in issued) == waiting
    first = msgspec.structs.replace(queued(1, waiting, 7200, submitted=0.0), predicted_start=0.0)
    pending = (PendingJob("ours1", waiting, 7200),)
    again = plan(view(first, waiting=waiting, times=unlike, pending=pending))
    assert not [each for each in again if isinstance(each, SubmitRequest)]


def outgrown() -> SiteState:
    """A narrow request that still runs for hours, and a machine that has become free beside it."""
    ours = PilotView(
        id=7,
        job="ours7",
        state=PilotState.RUNNING,
        request=Request(2, 36_000),
        submitted=-1000.0,
        started=-1000.0,
        ends=35_000.0,
        processors=2,
    )
    running = (RunningJob("ours7", 2, 35_000.0),)
    return view(ours, waiting=1000, running=running, rules=one_at_a_time())


def test_a_running_request_goes_on_even_for_a_much_sooner_completion() -> None:
    """Its tasks would start anew, again and again where each of them outlives the comparison."""
    assert not any(isinstance(each, Withdraw) for each in plan(outgrown()))


def test_a_site_that_forbids_withdrawing_has_its_way() -> None:
    rules = msgspec.structs.replace(one_at_a_time(), may_withdraw=False)
    assert isinstance(plan(msgspec.structs.replace(freed(), rules=rules))[0], Withhold)


def test_a_request_too_short_for_every_waiting_task_is_withdrawn_even_there() -> None:
    rules = msgspec.structs.replace(one_at_a_time(), may_withdraw=False)
    short = view(queued(7, 64, 300), pending=(PendingJob("ours7", 64, 300, 10.0),), rules=rules)
    (withdrawn,) = plan(short)
    assert isinstance(withdrawn, Withdraw)
    assert withdrawn.reason == "5m is too short for every waiting task: the shortest needs 10m"


def bounded(demand: Demand, **bounds: object) -> Demand:
    return msgspec.structs.replace(demand, **bounds)


def test_hosts_are_bought_for_as_long_as_the_aims_say() -> None:
    seen = view()
    bought = bounded(
        seen.demands[0], hosts_counted=True, least_tr=7200, most=8, why_most="8 hosts keep the deadline"
    )
    issued = plan(msgspec.structs.replace(seen, demands=(bought,)))
    assert issued
    for each in issued:
        assert isinstance(each, SubmitRequest)
        assert each.crafted.request.tr >= 7200
        assert "; 8 hosts keep the deadline" in each.crafted.reason
    assert sum(each.crafted.request.p for each in issued if isinstance(each, SubmitRequest)) <= 8


def test_tasks_that_run_alone_get_a_request_each() -> None:
    """A wide one would stand empty but for one slot."""
    seen = view(waiting=5)
    issued = plan(msgspec.structs.replace(seen, demands=(bounded(seen.demands[0], alone=True),)))
    assert [each.crafted.request.p for each in issued if isinstance(each, SubmitRequest)] == [1, 1, 1]


@pytest.mark.parametrize("most", [1, 7, 20])
def test_no_more_processors_than_a_bound_leaves(most: int) -> None:
    """Of a quote, or of `max-running`."""
    seen = view(running=(RunningJob("1", 48, 7200.0),))
    demand = bounded(seen.demands[0], most=most, why_most="the quote says so")
    issued = [
        each
        for each in plan(msgspec.structs.replace(seen, demands=(demand,)))
        if isinstance(each, SubmitRequest)
    ]
    assert 0 < sum(each.crafted.request.p for each in issued) <= most
    assert all("; the quote says so" in each.crafted.reason for each in issued)


def test_where_nothing_may_be_made_no_place_is_given_up_either() -> None:
    seen = freed()
    demand = bounded(seen.demands[0], most=0, why_most="such requests fail")
    assert plan(msgspec.structs.replace(seen, demands=(demand,))) == [
        Withhold("pilot 7 (64 processors) is queued; such requests fail", demand)
    ]


def test_a_place_is_given_up_for_no_more_processors_than_a_bound_leaves() -> None:
    """Those of the place itself are among them."""
    seen = freed()
    demand = bounded(seen.demands[0], most=1, why_most="max-running")
    (withdrawn,) = plan(msgspec.structs.replace(seen, demands=(demand,)))
    assert isinstance(withdrawn, Withdraw)
    assert withdrawn.reason.startswith("64 × ")
    gone = msgspec.structs.replace(seen, demands=(bounded(demand, most=65),), requests=())
    assert sum(each.crafted.request.p for each in plan(gone) if isinstance(each, SubmitRequest)) <= 65


def test_work_after_a_deadline_is_not_asked_for() -> None:
    seen = view(waiting=10_000)
    issued = plan(msgspec.structs.replace(seen, demands=(bounded(seen.demands[0], longest=5400),)))
    lengths = [each.crafted.request.tr for each in issued if isinstance(each, SubmitRequest)]
    assert lengths
    assert max(lengths) <= 5400


def side_by_side(*pilots: PilotView) -> SiteState:
    """Many small tasks, and a few that need 16 processors each."""
    seen = view(*pilots)
    wide = Demand(
        task=TaskSize(processors=16), waiting=4, runtime=3600.0, shortest=3600.0,
        times=known_runtimes(finished=3, mean=3600.0, longest=3600.0),
    )  # fmt: skip
    return msgspec.structs.replace(seen, demands=(*seen.demands, wide))


def test_tasks_of_several_sizes_get_requests_of_their_own_beside_each_other() -> None:
    seen = side_by_side()
    issued = [each for each in plan(seen) if isinstance(each, SubmitRequest)]
    assert {each.demand.task for each in issued} == {each.task for each in seen.demands}
    assert not any("adaptive" in each.crafted.reason for each in issued)
    free = Profile(0.0, 64)
    for each in issued:  # they are planned beside each other: all of them fit when they say
        start, request = each.crafted.predicted_start, each.crafted.request
        assert start is not None
        assert free.minimum(start, start + request.tr) >= request.p
        free.take(start, request.tr, request.p)


def test_a_pilot_serves_the_tasks_that_it_was_made_for() -> None:
    own = queued(7, 64, 36_000)
    seen = side_by_side(own)
    small, wide = seen.demands
    for made_for, other in ((0, 1), (1, 0)):
        pilot = msgspec.structs.replace(own, shape=seen.demands[made_for].shape)
        assert pilots_by_demand(msgspec.structs.replace(seen, requests=(pilot,)), [0, 1]) == {
            made_for: [pilot],
            other: [],
        }
    of_wide = msgspec.structs.replace(own, shape=wide.shape)
    assert pilots_by_demand(msgspec.structs.replace(seen, requests=(of_wide,)), [0]) == {0: [of_wide]}
    narrow = msgspec.structs.replace(own, request=Request(8, 36_000))
    assert pilots_by_demand(msgspec.structs.replace(seen, requests=(narrow,)), [0, 1]) == {0: [narrow], 1: []}
    stranger = msgspec.structs.replace(own, bag=5)
    assert pilots_by_demand(msgspec.structs.replace(seen, requests=(stranger,)), [0, 1]) == {0: [], 1: []}
    assert small.waiting


def test_a_bag_foretold_to_be_short_asks_for_nothing_hours_away() -> None:
    planned = PendingJob("theirs", 64, 3600, 600.0)
    seen = view(pending=(planned,), waiting=500, runtime=10.0, times=known_runtimes(told=10.0))
    (issue,) = plan(seen)
    assert isinstance(issue, SubmitRequest)
    assert issue.crafted.predicted_start == 0.0
    assert "1970" not in issue.crafted.reason


def test_a_pilot_of_a_bag_without_waiting_tasks_is_withdrawn_as_others_wait() -> None:
    strangers = msgspec.structs.replace(queued(7, 64, 36_000), bag=5)
    seen = view(strangers, pending=(PendingJob("ours7", 64, 36_000, 10.0),))
    assert Withdraw(7, "no task waits (0 running)") in plan(seen)


def test_no_more_requests_than_the_hour_allows() -> None:
    seen = msgspec.structs.replace(view(times=known_runtimes(), runtime=60.0), submissions=SubmissionsLeft(1))
    assert len([each for each in plan(seen) if isinstance(each, SubmitRequest)]) == 1
    (withheld,) = plan(msgspec.structs.replace(seen, submissions=SubmissionsLeft(0, 60.0)))
    assert isinstance(withheld, Withhold)
    assert "max_submissions" in withheld.reason


def test_a_better_request_that_cannot_be_sent_this_hour_is_said() -> None:
    seen = msgspec.structs.replace(freed(), submissions=SubmissionsLeft(0, 60.0))
    (withheld,) = plan(seen)
    assert isinstance(withheld, Withhold)
    assert withheld.reason.startswith("a better request waits until")


@pytest.mark.parametrize("alone", [True, False])
def test_no_second_request_waits_for_the_first_where_no_other_job_can_come_between(alone: bool) -> None:
    running = RunningJob("ours1", 64, 36_000.0)
    pilot = PilotView(
        id=1,
        job="ours1",
        state=PilotState.RUNNING,
        request=Request(64, 36_000),
        submitted=0.0,
        started=0.0,
        ends=36_000.0,
    )
    rules = msgspec.structs.replace(RULES, ours_alone=alone)
    (answer,) = plan(view(pilot, waiting=400, times=known_runtimes(), running=(running,), rules=rules))
    assert isinstance(answer, Withhold if alone else SubmitRequest)
    first, *more = plan(view(waiting=400, times=known_runtimes(), running=(running,), rules=rules))
    assert isinstance(first, SubmitRequest), "the only request keeps its place among those of other bags"
    assert bool(more) is not alone


def test_where_the_requests_are_used_up_that_is_the_reason() -> None:
    """The tasks could run: not that no request could run them."""
    others = [msgspec.structs.replace(queued(number, 1, 36_000), bag=6) for number in (1, 2, 3)]
    seen = view(*others, waiting=4)
    demand = msgspec.structs.replace(seen.demands[0], bag=5)
    told = plan(msgspec.structs.replace(seen, demands=(demand,)))
    (withheld,) = (each for each in told if isinstance(each, Withhold))
    assert "max_pending_requests" in withheld.reason
    assert "could run" not in withheld.reason


@pytest.mark.parametrize(("waiting", "withdrawn"), [(1, []), (100, [1])])
def test_the_only_request_is_made_anew_for_a_bag_that_has_grown_just_after_it(
    waiting: int, withdrawn: list[int]
) -> None:
    """The first task of an open bag had a request of its own, and all others ran in it, one after another."""
    alone = msgspec.structs.replace(RULES, limits=Limits(max_pending_requests=1, max_proc=64, max_tr=36_000))
    others = (RunningJob("1", 64, 7200.0),)
    seen = view(queued(1, 1, 13_680, submitted=-8.0), waiting=waiting, running=others, rules=alone)
    assert [each.pilot for each in plan(seen) if isinstance(each, Withdraw)] == withdrawn
