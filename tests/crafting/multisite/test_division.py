"""Several sites share the waiting tasks: who gets how many, and the sentence that says why."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.coverage import joint_coverage
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.multisite.division import SitePart, by_demand, divide
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.places import Place
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    PlannedAction,
    SiteState,
    SubmitRequest,
    TaskGroup,
    Withdraw,
    Withhold,
)
from adaptor.model import Request
from adaptor.resources import TaskSize
from tests.crafting.planner_views import queued, running, views
from tests.examples import examples

from .division_sites import NOW, bag, site, situations, standing, with_waits

Sites = dict[str, list[Place]]


def shares(parts: dict[str, SitePart]) -> dict[str, int]:
    return {name: sum(part.uncovered) for name, part in parts.items()}


def divided(near: list[Place], far: list[Place], *groups: TaskGroup) -> dict[str, int]:
    return shares(divide({"near": near, "far": far}, groups or (bag(400),)))


def learned(lateness: float) -> WaitLearner:
    waits = WaitLearner()
    waits.started(16, lateness, NOW)
    return waits


def late_pilot(late: float, waited: float, id: int = 7, p: int = 16, tr: int = 600) -> PilotView:
    return msgspec.structs.replace(
        queued(id, p, tr), submitted=NOW - waited, predicted_start=NOW - late
    )  # fmt: skip


def test_equal_sites_share_equally() -> None:
    assert divided(site(), site()) == {"near": 200, "far": 200}
    assert divided(site(), site(), bag(7)) == {"near": 3, "far": 4}


def test_a_site_with_three_times_the_processors_gets_three_times_the_tasks() -> None:
    assert divided(site(48, max_proc=48), site(16)) == {"near": 300, "far": 100}


def test_a_site_on_which_tasks_run_twice_as_long_gets_half_as_many() -> None:
    tasks = bag(288, {"near": 60.0, "far": 120.0})
    assert divided(site(), site(), tasks) == {"near": 192, "far": 96}


def test_a_site_that_is_free_later_gets_what_it_can_do_from_then_on() -> None:
    """400 tasks at 16 a minute: near works for 17 minutes, far for the last 8 of them."""
    assert divided(site(), site(busy_for=540)) == {"near": 272, "far": 128}
    assert divided(site(), site(busy_for=7200)) == {"near": 400, "far": 0}


def test_a_site_that_was_late_is_taken_to_be_late_again() -> None:
    assert divided(site(), site(waits=learned(540))) == {"near": 272, "far": 128}


def test_a_site_whose_pilots_are_late_now_is_taken_to_be_late() -> None:
    far = site(pilots=(late_pilot(540, waited=600, p=1, tr=60),))
    assert divided(site(), far, bag(401)) == {"near": 272, "far": 128}


def test_never_more_than_the_requests_can_hold() -> None:
    """Two requests of 4 processors for 10 minutes hold 80 tasks, one more where a pilot is there already."""
    far = site(requests=2, max_proc=4, max_tr=600)
    assert divided(site(busy_for=1800), far) == {"near": 107, "far": 80}, "213 are left for far's next ones"
    assert divided(site(requests=0), far) == {"near": 0, "far": 80}
    one = site(requests=2, max_proc=4, max_tr=600, pilots=(queued(1, 4, tr=600),))
    assert divided(site(requests=0), one) == {"near": 0, "far": 40}


def test_what_a_site_will_soon_do_is_not_given_to_a_slower_one() -> None:
    """Far has 16 tasks left to ask for, and its only pilot ends in half a minute."""
    far = site(requests=1, pilots=(running(1, 16, left=30),))
    assert divided(site(4), far, bag(16)) == {"near": 4, "far": 0}
    assert divided(site(4), site(requests=1, pilots=(running(1, 16, left=3000),)), bag(1000))["near"] > 0


@pytest.mark.parametrize(
    "mood", [{"closed": "its scheduler does not answer"}, {"lost": True}, {"read": False}]
)
def test_a_site_without_an_answer_gets_nothing_new(mood: dict[str, Any]) -> None:
    assert divided(site(), site(**mood)) == {"near": 400, "far": 0}


def test_what_a_pilot_covers_at_one_site_is_not_asked_for_at_another() -> None:
    far = site(busy_for=7200, pilots=(queued(1, 16, tr=1200),))
    assert divided(site(), far) == {"near": 80, "far": 0}


def test_what_was_planned_at_a_site_that_is_lost_is_divided_again() -> None:
    pilots = (queued(1, 16, tr=1200), running(2, 16, left=1200))
    assert divided(site(), site(pilots=pilots, closed="silent")) == {"near": 0, "far": 0}
    assert divided(site(), site(pilots=pilots, lost=True)) == {"near": 400, "far": 0}


def test_workers_that_are_heard_of_count_though_their_scheduler_is_lost() -> None:
    far = site(pilots=(running(2, 16, left=1200, workers=4),), lost=True)
    assert divided(site(), far) == {"near": 320, "far": 0}


def test_the_sites_of_a_bag_are_respected() -> None:
    only_far = TaskGroup(100, {"far": Demand(waiting=100, runtime=60.0, task=TaskSize(processors=2))})
    parts = divide({"near": site(), "far": site()}, (bag(100), only_far))
    assert parts["near"].uncovered[1] == 0
    assert parts["far"].uncovered[1] == 100


def test_tasks_wider_than_a_request_of_a_site_go_to_the_other() -> None:
    assert divided(site(max_proc=4), site(), bag(40, cpus=8)) == {"near": 0, "far": 40}


def test_bags_of_one_shape_are_planned_for_together() -> None:
    groups = (bag(60), bag(40, 60.0, "far"))
    demands = [Demand(waiting=100, runtime=60.0)]
    parts = divide({"near": site(requests=0), "far": site()}, groups)
    assert by_demand(parts["far"], "far", groups, demands).uncovered == [100]


def reasons(near: list[Place], far: list[Place], *groups: TaskGroup) -> tuple[str, str]:
    parts = divide({"near": near, "far": far}, groups or (bag(400),))
    return parts["near"].reason, parts["far"].reason


def test_the_reasons() -> None:
    assert reasons(site(), site(busy_for=540, waits=learned(0)))[1] == (
        "gets 128 of 400 waiting tasks: all can be done in 17m if near gets 272"
    )
    assert reasons(site(), site(waits=learned(540)))[1].endswith("; requests start 9m late here")
    assert reasons(site(), site(busy_for=7200))[1] == (
        "gets none of 400 waiting tasks: a first task could be done here in 2h 1m, "
        "all of them elsewhere in 25m; near gets 400"
    )
    assert reasons(site(requests=0), site(max_proc=4, requests=1, max_tr=600))[1] == (
        "gets 40 of 400 waiting tasks: all can be done in 1h 40m if near gets 0, 360 stay for later requests"
    )
    assert reasons(site(), site(closed="its scheduler does not answer"))[1] == (
        "gets none of 400 waiting tasks: its scheduler does not answer; near gets 400"
    )
    assert reasons(site(), site(busy_for=math.inf))[1] == (
        "gets none of 400 waiting tasks: no free slot here is wide and long enough for a task; near gets 400"
    )
    covered = site(pilots=(queued(1, 16, tr=3600),))
    assert reasons(site(), covered)[0] == (
        "the pilots in the system (0 at near, 1 at far) already cover the 400 waiting tasks"
    )


def test_the_limit_is_named_with_its_pilots() -> None:
    pilot = msgspec.structs.replace(queued(3, 1, tr=60), predicted_start=NOW + 36_000)
    full = site(requests=1, pilots=(pilot,))
    assert reasons(site(), full)[1] == (
        "gets none of 400 waiting tasks: max_pending_requests is 1 and used up (pilot 3 queued); "
        "near gets 399, pilots in the system cover 1"
    )


def test_a_pilot_much_later_than_predicted_is_taken_back_where_another_site_is_sooner() -> None:
    far = site(busy_for=7200, pilots=(late_pilot(1800, waited=2000),))
    part = divide({"near": site(), "far": far}, (bag(160),))["far"]
    assert part.late == {
        7: "it should have started 30m ago; near can finish its tasks in 10m"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("near", "pilot"),
    [
        (site(), late_pilot(200, waited=300)),  # a little late
        (site(), late_pilot(1800, waited=7200)),  # late, but it was to wait for longer than that
        (site(busy_for=1800), late_pilot(1800, waited=2000)),  # near is no sooner
        (site(closed="silent"), late_pilot(1800, waited=2000)),
        (site(requests=0), late_pilot(1800, waited=2000)),
    ],
)
def test_otherwise_it_keeps_its_place(near: list[Place], pilot: PilotView) -> None:
    assert divide({"near": near, "far": site(pilots=(pilot,))}, (bag(160),))["far"].late == {}


def test_what_was_taken_back_for_its_lateness_is_not_asked_for_there_again() -> None:
    """No flapping: the site has learned how late it is."""
    waits = WaitLearner()
    waits.gave_up(16, 1800, NOW)
    assert divided(site(), site(waits=waits), bag(160)) == {"near": 160, "far": 0}


def test_of_several_late_pilots_one_goes_at_a_time() -> None:
    pilots = (late_pilot(1700, waited=1800, id=7), late_pilot(1800, waited=1900, id=8))
    assert set(divide({"near": site(), "far": site(pilots=pilots)}, (bag(320),))["far"].late) == {8}


def test_the_planner_carries_the_part_out() -> None:
    near, far = site(), site(busy_for=540)
    groups = (bag(400),)
    parts = divide({"near": near, "far": far}, groups)
    asked = {}
    for name, each in (("near", near), ("far", far)):
        view = msgspec.structs.replace(each[0].site, demands=(groups[0].at[name],))
        issued = plan(view, by_demand(parts[name], name, groups, view.demands))
        asked[name] = sum(each.crafted.tasks for each in issued if isinstance(each, SubmitRequest))
    assert asked == {"near": 272, "far": 128}


def test_the_planner_withholds_with_the_reason_and_withdraws_late_pilots() -> None:
    far = site(busy_for=7200, pilots=(late_pilot(1800, waited=2000),))
    groups = (bag(160),)
    part = divide({"near": site(), "far": far}, groups)["far"]
    view = msgspec.structs.replace(far[0].site, demands=(groups[0].at["far"],))
    assert plan(view, part) == [Withdraw(7, part.late[7]), Withhold(part.reason)]


@examples(150)
@given(situations())
def test_no_task_is_covered_or_asked_for_twice_and_nobody_is_above_the_limits(
    drawn: tuple[Sites, tuple[TaskGroup, ...]],
) -> None:
    sites, groups = drawn
    parts = divide(sites, groups)
    left = joint_coverage({name: each[0].site for name, each in sites.items()}, groups).uncovered
    for index, group in enumerate(groups):
        assert sum(part.uncovered[index] for part in parts.values()) <= left[index] <= group.waiting
    for name, each in sites.items():
        assert all(
            not tasks or (name in group.at and not each[0].site.closed)
            for group, tasks in zip(groups, parts[name].uncovered, strict=True)
        )
        limits = each[0].site.rules.limits
        asked = sum(
            math.ceil(tasks / _most(each, group.at[name]))
            for group, tasks in zip(groups, parts[name].uncovered, strict=True)
            if tasks
        )
        assert not asked or asked + len(each[0].site.requests) <= limits.max_pending_requests


def _most(each: list[Place], demand: Demand) -> int:
    """Tasks that the largest request of a site holds."""
    assert each[0].site.queue is not None
    shape = RequestShape.for_demand(each[0].site.rules, each[0].site.queue, demand)
    return shape.slots(shape.widest) * max(1, shape.rounds(each[0].site.rules.limits.max_tr))


@examples(100)
@given(situations(), st.integers(1, 10))
def test_a_site_that_gets_faster_never_gets_fewer_tasks(
    drawn: tuple[Sites, tuple[TaskGroup, ...]], factor: int
) -> None:
    sites, groups = drawn
    group = groups[0]
    name = next(iter(group.at))
    slow = divide(sites, (group,))[name].uncovered[0]
    faster = with_waits(sites[name], WaitLearner())
    later = WaitLearner()
    later.started(1, 100.0 * factor, sites[name][0].site.now)
    slower = with_waits(sites[name], later)
    assert divide({**sites, name: faster}, (group,))[name].uncovered[0] >= slow
    assert divide({**sites, name: slower}, (group,))[name].uncovered[0] <= slow


@examples(100)
@given(views().filter(lambda view: view.queue is not None and view.heuristic == "adaptive"))
def test_one_site_alone_asks_for_what_it_would_ask_for_without_a_division(view: SiteState) -> None:
    alone = msgspec.structs.replace(view, demands=view.demands[:1])
    groups = tuple(
        TaskGroup(demand.waiting, {"here": demand}, {"here": demand.running}) for demand in alone.demands
    )
    part = divide({"here": standing(alone)}, groups)["here"]
    assert requests(plan(alone, part)) == requests(plan(alone))
    assert withdrawn(plan(alone, part)) == withdrawn(plan(alone))


def requests(decisions: list[PlannedAction]) -> list[Request]:
    return [each.crafted.request for each in decisions if isinstance(each, SubmitRequest)]


def withdrawn(decisions: list[PlannedAction]) -> list[int]:
    return [each.pilot for each in decisions if isinstance(each, Withdraw)]
