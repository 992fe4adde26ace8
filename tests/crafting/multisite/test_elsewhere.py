"""What the other sites do for the tasks of a site that plans by completion."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from adaptor.crafting.choosing import Wanted
from adaptor.crafting.completion.search import Search
from adaptor.crafting.multisite.capacity import TargetShares
from adaptor.crafting.multisite.division import by_demand, divide, elsewhere
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.places import Place, places_of
from adaptor.crafting.planner import plan
from adaptor.crafting.serving import SOONER
from adaptor.crafting.situation import SubmitRequest, TaskGroup
from adaptor.model import PendingJob
from tests.crafting.planner_views import queued, running
from tests.examples import examples
from tests.runtimes.known import known_runtimes

from .division_sites import NOW, bag, of_bag, site, situations, with_waits


def known(group: TaskGroup) -> TaskGroup:
    """Tasks that have run for their estimate."""
    demands = {
        name: msgspec.structs.replace(
            demand, times=known_runtimes(finished=64, mean=demand.runtime, longest=demand.runtime)
        )
        for name, demand in group.at.items()
    }
    return msgspec.structs.replace(group, at=demands)


def two(far: list[Place]) -> dict[str, list[Place]]:
    return {"near": site(heuristic="completion"), "far": far}


def test_pilots_of_other_sites_count() -> None:
    sites = two(site(pilots=(running(1, 8, left=600.0),)))
    (near,) = elsewhere(sites, [known(bag(100))], "near")
    (member,) = near.values()
    assert (member.start, member.length, member.slots) == (0.0, 600.0, 8)
    (far,) = elsewhere(sites, [known(bag(100))], "far")
    assert far == {}


def test_a_slower_site_has_fewer_slots_of_this_speed() -> None:
    sites = two(site(pilots=(running(1, 8, left=600.0),)))
    (near,) = elsewhere(sites, [bag(100, {"near": 60.0, "far": 120.0})], "near")
    assert [member.slots for member in near.values()] == [4.0]


def test_a_queued_pilot_waits_for_its_planned_start_and_as_late_as_others_there() -> None:
    ours = msgspec.structs.replace(queued(1, 8, 600), job="ours")
    far = site(pilots=(ours,), pending=(PendingJob("ours", 8, 600, NOW + 100.0),))
    waits = WaitLearner()
    waits.started(8, 50.0, NOW)
    for status, wait in ((far, 100.0), (with_waits(far, waits), 150.0)):
        (near,) = elsewhere(two(status), [bag(100)], "near")
        (member,) = near.values()
        assert (member.start, member.length) == (pytest.approx(SOONER * wait), 600.0)


def test_of_a_site_that_is_lost_only_workers_that_still_send_messages_count() -> None:
    pilots = (queued(1, 8, 600), running(2, 8, left=600.0), running(3, 8, left=600.0, workers=4))
    (near,) = elsewhere(two(site(pilots=pilots, lost=True)), [bag(100)], "near")
    assert {id: member.slots for id, member in near.items()} == {3: 4}


def test_a_site_plans_for_all_tasks_beside_the_others_pilots_and_says_so() -> None:
    """The pilots of far are done with all of them in a minute, and nothing is asked for here."""
    group = known(bag(16))
    for far, asks in ((site(), True), (site(pilots=(running(1, 16, left=600.0),)), False)):
        sites = two(far)
        parts = divide(sites, [group])
        demand = group.at["near"]
        part = by_demand(parts["near"], "near", [group], [demand])
        decisions = plan(msgspec.structs.replace(sites["near"][0].site, demands=(demand,)), part)
        assert any(isinstance(decision, SubmitRequest) for decision in decisions) is asks
        there = len(far[0].site.requests)
        assert part.reason == f"plans for 16 waiting tasks besides the pilots of other sites ({there} at far)"


def test_tasks_that_are_divided_by_cost_are_not_planned_by_all_sites() -> None:
    group = of_bag(bag(16), 7)
    target = TargetShares(shares={"far": 16}, seconds=60.0, reason="far is cheaper")
    sites, demand = two(site()), group.at["near"]
    part = by_demand(divide(sites, [group], {7: target})["near"], "near", [group], [demand])
    assert part.replans == [False]
    decisions = plan(msgspec.structs.replace(sites["near"][0].site, demands=(demand,)), part)
    assert not any(isinstance(decision, SubmitRequest) for decision in decisions)


def test_nor_are_they_before_the_costs_are_compared_or_when_pilots_of_one_site_cover_them() -> None:
    group = of_bag(bag(8), 7)
    sites = two(site(pilots=(msgspec.structs.replace(running(1, 8, left=600.0), bag=7),)))
    part = by_demand(divide(sites, [group], {7: None})["near"], "near", [group], [group.at["near"]])
    assert (part.uncovered, part.replans) == ([0], [False])
    assert part.reason.startswith("the pilots in the system (")


def test_a_bag_with_pilots_of_its_own_that_no_cost_divides_is_planned_by_all_sites() -> None:
    pilots = (msgspec.structs.replace(running(1, 8, left=600.0), bag=7),)
    parts = divide(two(site(pilots=pilots)), [of_bag(bag(16), 7)])
    assert parts["near"].reason == "plans for 16 waiting tasks besides the pilots of other sites (1 at far)"
    (there,) = parts["near"].elsewhere
    assert list(there) == [1]


def test_a_pilot_counts_once_for_tasks_of_one_shape() -> None:
    """Some of them may run at a third site too."""
    sites = {**two(site(pilots=(running(1, 8, left=600.0),))), "third": site()}
    groups = [bag(100), bag(50, 60.0, "near", "far", "third")]
    demands = [groups[0].at["near"]]
    part = by_demand(divide(sites, groups)["near"], "near", groups, demands)
    (there,) = part.elsewhere
    assert list(there) == [1]


@examples(100)
@given(situations())
def test_every_pilot_elsewhere_serves_one_group_at_most(
    situation: tuple[dict[str, list[Place]], tuple[TaskGroup, ...]],
) -> None:
    sites, groups = situation
    for here in sites:
        found = elsewhere(sites, groups, here)
        ids = [id for there in found for id in there]
        others = [
            pilot.id for name, status in sites.items() if name != here for pilot in status[0].site.requests
        ]
        assert len(ids) == len(set(ids))
        assert set(ids) <= set(others)
        for there in found:
            for member in there.values():
                assert member.start >= 0
                assert member.length >= 0
                assert member.slots >= 0


def test_tasks_that_run_elsewhere_count_once() -> None:
    """The demand for requests of a site has those of all sites (`scheduling.demand`)."""
    far, near = (msgspec.structs.replace(known(bag(100)).at[name], running=8) for name in ("far", "near"))
    sites = two(site(pilots=(running(1, 8, left=600.0),)))
    (there,) = elsewhere(sites, [TaskGroup(waiting=100, at={"near": near, "far": far})], "near")
    view = sites["near"][0].site
    assert view.queue is not None
    wanted = Wanted(demand=near, remaining=100, allowed=4, elsewhere=there)
    assert Search(places_of(view), wanted).tasks == 108
