"""One planning step: what is issued, withheld and withdrawn, and the sentence that says why."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    PlannedAction,
    SiteRules,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.crafting.submissions import SubmissionsLeft
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.units import format_clock

from .planner_views import RULES, queued, running, site, tasks


def requests(decisions: list[PlannedAction]) -> list[Request]:
    return [each.crafted.request for each in decisions if isinstance(each, SubmitRequest)]


def withheld(view: SiteState) -> str:
    (only,) = plan(view)
    assert isinstance(only, Withhold)
    return only.reason


def test_nothing_to_do_for_nothing() -> None:
    assert plan(site()) == []
    assert plan(site(tasks(0), processors=None)) == []
    assert plan(site(tasks(0, running=3), pilots=(running(1, 4, left=900),))) == []


@pytest.mark.parametrize("heuristic", ["static", "adaptive"])
def test_requests_are_issued_for_waiting_tasks_up_to_the_limits(heuristic: str) -> None:
    decisions = plan(site(tasks(300), heuristic=heuristic))
    assert [request.p for request in requests(decisions)] == [8, 8, 8]
    assert all(request.tr <= 3600 for request in requests(decisions))
    assert all(each.demand == tasks(300) for each in decisions if isinstance(each, SubmitRequest))


def test_only_what_is_not_covered_is_asked_for() -> None:
    decisions = plan(site(tasks(45), pilots=(queued(1, 4, tr=630),)))
    assert requests(decisions) == [Request(5, 120)]


def test_pilots_in_every_state_of_the_system_count_towards_the_limit() -> None:
    submitting = PilotView(id=3, state=PilotState.SUBMITTING, request=Request(4, 60))
    pilots = (running(1, 4, left=100), queued(2, 4, tr=60), submitting)
    assert withheld(site(tasks(300), pilots=pilots)) == (
        "max_pending_requests is 3 and used up (pilot 1 running, pilot 2 queued, pilot 3 submitting): "
        "288 of 300 waiting tasks wait until a pilot ends; raise max_pending_requests if the site allows more"
    )


def test_what_is_left_of_an_hour_bounds_the_requests_and_says_when_they_go_on() -> None:
    rules = msgspec.structs.replace(RULES, max_submissions=60)
    view = msgspec.structs.replace(site(tasks(300)), rules=rules, submissions=SubmissionsLeft(2))
    assert len(requests(plan(view))) == 2
    none = msgspec.structs.replace(view, submissions=SubmissionsLeft(0, 1000.0))
    assert withheld(none) == (
        "max_submissions is 60 an hour and used up: 300 of 300 waiting tasks wait for a request until "
        f"{format_clock(1000.0)}; raise max_submissions if the site allows more"
    )
    pilot = queued(1, 2)
    needless = plan(msgspec.structs.replace(none, demands=(tasks(300, cpus=4),), requests=(pilot,)))
    assert [type(each) for each in needless] == [Withdraw, Withhold], "needless ones still go"


def test_a_withdrawn_pilot_still_counts_in_this_step() -> None:
    """Two pilots that are too narrow go; there is room for one request, not for three."""
    decisions = plan(site(tasks(300, cpus=4), pilots=(queued(1, 2), queued(2, 3))))
    assert [each for each in decisions if isinstance(each, Withdraw)] == [
        Withdraw(1, "2 processors cannot run any waiting task: the narrowest needs 4"),
        Withdraw(2, "3 processors cannot run any waiting task: the narrowest needs 4"),
    ]
    assert [request.p for request in requests(decisions)] == [8]


def test_everything_covered() -> None:
    assert withheld(site(tasks(40), pilots=(queued(1, 4, tr=630),))) == (
        "the pilots in the system (pilot 1 queued) already cover the 40 waiting tasks"
    )


def test_no_answer_of_the_scheduler() -> None:
    assert withheld(site(tasks(40), processors=None)) == (
        "the queue is not known: no new request for 40 waiting tasks until the scheduler tells; "
        "`adaptor status --sites` says why it does not"
    )


def test_a_task_wider_than_a_request() -> None:
    assert withheld(site(tasks(1, cpus=12))) == (
        "no request can run 1 task: each needs 12 processors, but max_proc is 8; "
        "raise max_proc or ask for fewer cpus"
    )


def test_a_task_wider_than_the_site() -> None:
    assert withheld(site(tasks(2, cpus=6), processors=4)) == (
        "no request can run 2 tasks: each needs 6 processors, but the site has 4 in service; "
        "choose another site"
    )


@pytest.mark.parametrize("heuristic", ["static", "adaptive", "completion"])
def test_a_site_without_a_node_in_service(heuristic: str) -> None:
    assert withheld(site(tasks(2), heuristic=heuristic, processors=0)) == "no node is in service now"
    covering = (running(1, 8, left=3000),)
    covered = withheld(site(tasks(2), heuristic=heuristic, processors=0, pilots=covering))
    assert "0 " not in covered
    assert plan(site(tasks(0), heuristic=heuristic, processors=0, pilots=covering)) == []


def test_tasks_wait_for_their_queued_pilots_first_of_all() -> None:
    """The first to start is named, as long as none runs."""
    later, first = (msgspec.structs.replace(queued(id, 5), predicted_start=9000.0 - id) for id in (1, 2))
    some = msgspec.structs.replace(tasks(300), most=0, why_most="5 may run at the same time")

    def why(*pilots: PilotView, demand: Demand = some) -> str:
        return withheld(site(demand, heuristic="completion", pilots=pilots))

    due = f"is expected to start at {format_clock(8998.0)}"
    assert why(later, first) == f"pilot 2 (5 processors) {due}; 5 may run at the same time"
    late = msgspec.structs.replace(first, predicted_start=900.0)
    assert why(late) == "pilot 2 (5 processors) is queued; 5 may run at the same time"
    assert why(first, running(3, 5, left=1800)) == "5 may run at the same time"
    assert why(first, demand=msgspec.structs.replace(some, running=1)) == "5 may run at the same time"


def test_whole_nodes_larger_than_a_request() -> None:
    assert withheld(site(tasks(2), rules=msgspec.structs.replace(RULES, granularity=16))) == (
        "no request can run 2 tasks: each needs 16 processors (whole nodes of 16), but max_proc is 8; "
        "raise max_proc"
    )


def test_a_task_wider_than_a_node() -> None:
    rules = SiteRules(limits=Limits(max_pending_requests=1, max_proc=64, max_tr=600), granularity=8)
    assert withheld(site(tasks(2, cpus=12), rules=rules)) == (
        "no request can run 2 tasks: each needs 12 processors on one node, but a node has 8; "
        "ask for 8 cpus or fewer"
    )


def test_no_free_slot() -> None:
    full = QueueState(now=1000, processors=4, running=(RunningJob("a", 4, float("inf")),))
    assert withheld(msgspec.structs.replace(site(tasks(2)), queue=full)) == (
        "the queue leaves no free slot of 1 processor for 2m, the least that a task needs: "
        "no request for 2 tasks until such a slot opens"
    )


def test_without_waiting_tasks_every_queued_pilot_is_withdrawn_and_no_running_one() -> None:
    submitting = PilotView(id=4, state=PilotState.SUBMITTING, request=Request(4, 60))
    pilots = (running(1, 4, left=3000), queued(2, 4), queued(3, 4), submitting)
    reason = "no task waits (2 running)"
    assert plan(site(tasks(0, running=2), pilots=pilots)) == [Withdraw(2, reason), Withdraw(3, reason)]


def test_they_are_withdrawn_while_the_scheduler_is_silent_too() -> None:
    decisions = plan(site(tasks(0), pilots=(queued(2, 4),), processors=None))
    assert decisions == [Withdraw(2, "no task waits (0 running)")]


def test_a_needless_pilot_is_withdrawn_with_its_reason() -> None:
    withdrawal, held_back = plan(site(tasks(4), pilots=(queued(1, 4), queued(2, 4))))
    assert withdrawal == Withdraw(
        2,
        "the 4 waiting tasks already fit in idle slots and earlier pilots",
    )
    assert isinstance(held_back, Withhold)


def test_hosts_that_were_bought_one_by_one_stay_while_tasks_wait() -> None:
    """Else the same request is sent and withdrawn in every second step."""
    bought = msgspec.structs.replace(tasks(4), hosts_counted=True, most=4)
    pilots = (queued(1, 4), queued(2, 4))
    assert not [each for each in plan(site(bought, pilots=pilots)) if isinstance(each, Withdraw)]
    over = msgspec.structs.replace(bought, waiting=0)
    assert len([each for each in plan(site(over, pilots=pilots)) if isinstance(each, Withdraw)]) == 2
    long = msgspec.structs.replace(bought, runtime=600.0, shortest=600.0)
    assert Withdraw in [type(each) for each in plan(site(long, pilots=(queued(1, 4, tr=60),)))]


def test_a_pilot_that_is_too_short_for_every_task_says_so() -> None:
    long = msgspec.structs.replace(tasks(4, runtime=600), shortest=600.0)
    (withdrawal, *_) = plan(site(long, pilots=(queued(1, 4, tr=60),)))
    assert withdrawal == Withdraw(1, "1m is too short for every waiting task: the shortest needs 10m")


def test_a_needless_pilot_counts_only_the_tasks_that_it_could_run() -> None:
    """Four narrow tasks fit on the first pilot; the wide one fits on neither."""
    withdrawals = plan(site(tasks(1), tasks(9, cpus=8), pilots=(queued(1, 4), queued(2, 4))))
    assert withdrawals[0] == Withdraw(2, "the 1 waiting task already fits in idle slots and earlier pilots")


def test_every_demand_gets_its_first_request_before_another_gets_its_second() -> None:
    decisions = plan(site(tasks(300), tasks(2, cpus=4), tasks(20, cpus=2)))
    assert [each.demand.task.processors for each in decisions if isinstance(each, SubmitRequest)] == [1, 4, 2]


def test_a_demand_with_a_higher_priority_gets_all_that_it_can_use_first() -> None:
    urgent = msgspec.structs.replace(tasks(300, cpus=2), priority=1)
    decisions = plan(site(tasks(300), urgent))
    assert {each.demand.task.processors for each in decisions if isinstance(each, SubmitRequest)} == {2}
    small = msgspec.structs.replace(tasks(1, cpus=2), priority=1)
    decisions = plan(site(tasks(300), small))
    assert [each.demand.task.processors for each in decisions if isinstance(each, SubmitRequest)] == [2, 1, 1]


def test_what_one_demand_leaves_goes_to_the_next() -> None:
    decisions = plan(site(tasks(1, cpus=4), tasks(300)))
    assert [each.demand.task.processors for each in decisions if isinstance(each, SubmitRequest)] == [4, 1, 1]


def test_the_demand_with_the_least_coverage_goes_first() -> None:
    """The one allowed request goes to the tasks that fit on no pilot."""
    pilots = (queued(1, 3, tr=630), queued(2, 3, tr=630))
    decisions = plan(site(tasks(300), tasks(2, cpus=4), pilots=pilots))
    assert isinstance(decisions[0], SubmitRequest)
    assert decisions[0].demand.task.processors == 4
    assert decisions[1:] == [
        Withhold(
            "pilot 1 (3 processors) is queued; "
            "max_pending_requests is 3 and other tasks got the requests that were left: "
            "no request for 240 tasks until a pilot ends",
            tasks(300),
        )
    ]


def test_requests_of_one_step_do_not_count_on_the_same_slot() -> None:
    """8 processors; each demand would like all of them at once."""
    rules = SiteRules(limits=Limits(max_pending_requests=2, max_proc=8, max_tr=600))
    decisions = plan(site(tasks(8, runtime=600), tasks(2, cpus=4, runtime=600), rules=rules, processors=8))
    starts = [each.crafted.predicted_start for each in decisions if isinstance(each, SubmitRequest)]
    assert starts == [1000, 1600]


def test_a_request_that_is_being_submitted_keeps_its_slot() -> None:
    rules = SiteRules(limits=Limits(max_pending_requests=2, max_proc=8, max_tr=600))
    pilot = PilotView(id=1, state=PilotState.SUBMITTING, request=Request(8, 600))
    view = site(tasks(16, runtime=600), pilots=(pilot,), rules=rules, processors=8)
    starts = [each.crafted.predicted_start for each in plan(view) if isinstance(each, SubmitRequest)]
    assert starts == [1600]


def test_a_hole_in_front_of_a_planned_job_is_taken_at_once_and_delays_nobody() -> None:
    """4 of 16 processors are free for 14 minutes, then a planned job takes all of them."""
    now, hole = 1000.0, 14 * 60
    queue = QueueState(
        now=now,
        processors=16,
        running=(RunningJob("local", 12, now + hole),),
        pending=(PendingJob("planned", 16, 3600, planned_start=now + hole),),
    )
    rules = SiteRules(
        limits=Limits(max_pending_requests=3, max_proc=6, max_tr=3600), time_resolution=60, slot_margin=60,
        pad=30,
    )  # fmt: skip
    view = SiteState(
        now=now, queue=queue, rules=rules, heuristic="adaptive", demands=(tasks(8, runtime=6 * 60),)
    )
    first = plan(view)[0]
    assert isinstance(first, SubmitRequest)
    assert first.crafted.request == Request(4, 13 * 60)
    assert first.crafted.predicted_start == now
    assert first.crafted.tasks == 8
    assert now + first.crafted.request.tr + rules.slot_margin <= now + hole


@pytest.mark.parametrize(
    ("heuristic", "request_", "words"),
    [
        ("adaptive", Request(4, 13 * 60, 420), "4 × 7m to 13m"),
        ("completion", Request(4, 14 * 60, 420), "7m to 14m"),
    ],
)
def test_where_requests_shrink_a_hole_is_taken_to_its_end(
    heuristic: str, request_: Request, words: str
) -> None:
    """As above; 13 minutes are two rounds of tasks."""
    now, hole = 1000.0, 14 * 60
    queue = QueueState(
        now=now,
        processors=16,
        running=(RunningJob("local", 12, now + hole),),
        pending=(PendingJob("planned", 16, 3600, planned_start=now + hole),),
    )
    rules = SiteRules(
        limits=Limits(max_pending_requests=1, max_proc=6, max_tr=3600), time_resolution=60, slot_margin=100,
        shrink_margin=0, pad=30,
    )  # fmt: skip
    view = SiteState(
        now=now, queue=queue, rules=rules, heuristic=heuristic, demands=(tasks(80, runtime=6 * 60),)
    )
    (first,) = (each for each in plan(view) if isinstance(each, SubmitRequest))
    assert first.crafted.request == request_
    assert first.crafted.predicted_start == now
    assert words in first.crafted.reason


def test_an_unknown_heuristic_is_an_error() -> None:
    with pytest.raises(KeyError):
        plan(site(tasks(1), heuristic="clever"))
