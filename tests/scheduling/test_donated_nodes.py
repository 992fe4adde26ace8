"""Donated nodes: which tasks are started there, and what becomes of those that lose their node."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.fitting import release_probability, room
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import Leaving
from adaptor.scheduling.donation_facts import DonatedNode
from tests.donation.survival import survival
from tests.scheduling.broker_world import TERMS, World


def node(
    world: World, idle_for: float = 0.0, until: float = float("inf"), closes: float = float("inf")
) -> DonatedNode:
    return DonatedNode(since=world.now - idle_for, until=min(until, closes), closes=closes)


def outcomes(world: World) -> list[str]:
    rows = world.journal.connection.execute("SELECT outcome FROM attempt ORDER BY task, number")
    return [outcome for (outcome,) in rows]


def preempt(world: World, id: str, after: float) -> None:
    """A donated node is taken by a local job."""
    world.now += after
    world.leave(world.players[id], Leaving.SIGNAL)


@pytest.mark.parametrize(
    ("allocation", "lent", "starts"),
    [
        ("explicit", False, True),
        ("explicit", True, False),
        ("transparent", False, False),
        ("transparent", True, True),
        ("mixed", False, True),
        ("mixed", True, True),
    ],
)
def test_a_bag_runs_where_it_said(world: World, allocation: str, lent: bool, starts: bool) -> None:
    world.submit(1, allocation=allocation)
    player = world.join("w", donated=node(world) if lent else None)
    assert bool(player.running) is starts


def test_only_what_is_not_transparent_is_wanted_of_formal_requests(world: World) -> None:
    world.submit(3, allocation="transparent")
    assert world.broker.demands("site") == ()
    assert world.broker.groups() == ()
    world.submit(2, allocation="mixed")
    assert [demand.waiting for demand in world.broker.demands("site")] == [2]
    assert [demand.wanted.waiting for demand in world.broker.donation_demands("site")] == [3, 2]


def test_what_its_node_was_taken_from_costs_no_retry(world: World) -> None:
    bag = world.submit(1, retries=0)
    world.join("w", donated=node(world))
    preempt(world, "w", after=20)
    assert outcomes(world) == ["preempted"]
    assert world.states(bag) == ["waiting"]
    world.run_to_the_end()
    assert world.states(bag) == ["done"]


def test_a_task_that_ran_in_vain_needs_more_than_that(world: World) -> None:
    world.submit(2)
    first = world.join("w")
    world.finish(first, took=5)
    world.join("lent", donated=node(world))
    world.leave(world.players["w"], Leaving.IDLE)
    preempt(world, "lent", after=100)
    (demand,) = world.broker.demands("site")
    assert demand.runtime >= 100
    assert world.broker.donation_demands("site")[0].wanted.needs >= 100


def test_a_task_is_not_started_where_it_would_hardly_finish(world: World) -> None:
    world.submit(2)
    formal = world.join("w")
    world.finish(formal, took=1000)
    half = room(IdleLearner().hazard, 0.0, float("inf"), 0.5)
    assert half > 1000, "a node of which nothing is known is lent for such a task"
    planned = world.join("soon", donated=node(world, until=world.now + 900))
    assert not planned.running
    world.leave(world.players["w"], Leaving.SIGNAL)
    free = world.join("free", donated=node(world))
    assert free.running


def test_a_task_that_keeps_losing_its_node_waits_for_a_formal_request(world: World) -> None:
    bag = world.submit(1)
    for number in range(3):
        player = world.join(f"w{number}", donated=node(world))
        assert player.running
        preempt(world, f"w{number}", after=1)
    assert not world.join("again", donated=node(world)).running
    assert world.broker.donation_demands("site") == ()
    assert world.join("formal").running
    assert world.states(bag) == ["leased"]


def hold(world: World) -> None:
    """The only task of a mixed bag loses three donated nodes after 100 s each."""
    world.submit(1)
    for number in range(3):
        world.join(f"w{number}", donated=node(world))
        preempt(world, f"w{number}", after=100)


def test_a_held_task_goes_back_to_donated_nodes_where_its_request_starts_much_later(world: World) -> None:
    """Half of the nodes are taken within an hour, so 100 s are tried with few failures."""
    hold(world)
    assert world.broker.donation_demands("site") == (), "no request is predicted: one is about to be made"
    world.broker.expect_requests("site", {None: world.now + 1})
    assert not world.join("soon", donated=node(world)).running
    world.broker.expect_requests("site", {None: world.now + 86400})
    (demand,) = world.broker.donation_demands("site")
    assert demand.wanted.held_until == world.now + 86400
    assert demand.wanted.waiting == 1
    assert world.join("late", donated=node(world)).running


def test_a_held_task_is_not_tried_where_it_would_hardly_finish_however_late_its_request(world: World) -> None:
    hold(world)
    world.broker.expect_requests("site", {None: world.now + 1e9})
    learner = IdleLearner()
    for age in range(10, 110, 10):
        learner.saw(0.0, float(age), taken=True, nodes=1000)
    world.broker.learn_hazard("site", learner.hazard)
    assert not world.join("w", donated=node(world)).running


def test_a_request_of_another_bag_says_nothing_of_when_a_held_task_starts(world: World) -> None:
    hold(world)
    world.broker.expect_requests("site", {7: world.now + 86400})
    assert world.broker.donation_demands("site") == ()


def test_the_soonest_request_of_all_sites_counts(tmp_path: Path) -> None:
    world = World(tmp_path, ("site", "other"))
    hold(world)
    world.broker.expect_requests("site", {None: world.now + 86400})
    world.broker.expect_requests("other", {None: world.now + 1})
    (demand,) = world.broker.donation_demands("site")
    assert demand.wanted.held_until == world.now + 1
    assert not world.join("w", donated=node(world)).running
    world.close()


@given(st.floats(0, 1e5), st.floats(0, 1e6))
def test_what_is_released_is_done_before_its_request_would_have_done_it(need: float, wait: float) -> None:
    rules = DonationRules()
    least = release_probability(need, wait, rules)
    if least <= 1:
        assert least == rules.last_fit or need / least <= (wait + need) * (1 + 1e-9)
        assert least >= rules.last_fit
    else:
        assert wait <= 0


@pytest.mark.parametrize("silent", [False, True])
def test_hours_that_close_take_no_node(world: World, silent: bool) -> None:
    """A task that they cut on three evenings is not held: its runs were too short, by a time that is known.

    The pilots may last longer than the hours: they waited in the queue, or the configuration has changed.
    """
    world.submit(1)
    for evening, length in enumerate((40, 90, 200)):
        worker = f"w{evening}"
        player = world.join(worker, donated=node(world, closes=world.now + length))
        world.report(player)
        assert player.running
        if silent:
            world.now += length
            del world.players[worker]
            world.broker.lost(worker, AttemptOutcome.LOST, world.now, world.now)
            world.commit()
        else:
            preempt(world, worker, after=length)
    assert outcomes(world) == ["walltime"] * 3
    (bag,) = world.broker.state.bags.values()
    assert bag.preempted == {}
    (demand,) = world.broker.donation_demands("site")
    assert demand.wanted.needs == pytest.approx(2 * 200, rel=0.01), "growth_factor times what was not enough"
    assert not world.join("short", donated=node(world, closes=world.now + 300)).running
    assert world.join("long", donated=node(world, closes=world.now + 500)).running


def test_a_node_that_is_taken_before_the_hours_close_is_taken(world: World) -> None:
    world.submit(1)
    world.join("w", donated=node(world, closes=world.now + 200))
    preempt(world, "w", after=100)
    assert outcomes(world) == ["preempted"]


def test_in_a_transparent_bag_it_comes_after_all_others(world: World) -> None:
    world.submit(2, allocation="transparent")
    for number in range(3):
        player = world.join(f"w{number}", donated=node(world))
        assert {key.task for key in player.running} == {0}
        preempt(world, f"w{number}", after=1)
    player = world.join("again", donated=node(world))
    assert {key.task for key in player.running} == {1}
    world.finish(player)
    assert {key.task for key in player.running} == {0}


def test_a_held_task_of_a_transparent_bag_runs_where_no_other_fits(world: World) -> None:
    bag = world.submit(2, allocation="transparent")
    for number in range(3):  # task 0 is preempted three times, after 1 s each
        preempt(world, world.join(f"w{number}", donated=node(world)).id, after=1)
    other = world.join("other", donated=node(world))
    assert {key.task for key in other.running} == {1}
    preempt(world, "other", after=500)
    short = world.join("short", donated=node(world, until=world.now + 100))
    assert {key.task for key in short.running} == {0}, "task 1 needs more than 500 s"
    assert world.states(bag) == ["leased", "waiting"]


def test_a_held_task_is_the_first_in_a_formal_pilot(world: World) -> None:
    """It has no other place, while the others may run on donated nodes too."""
    world.submit(3)
    for number in range(3):
        preempt(world, world.join(f"w{number}", donated=node(world)).id, after=1)
    other = world.join("other", donated=node(world))
    assert {key.task for key in other.running} == {1}
    preempt(world, "other", after=1)
    formal = world.join("formal")
    assert {key.task for key in formal.running} == {0}, "though task 1 was put back after it"
    world.finish(formal)
    assert {key.task for key in formal.running} == {1}


def test_a_held_task_that_does_not_fit_into_a_formal_pilot_lets_others_pass(world: World) -> None:
    world.submit(2)
    for number in range(3):
        preempt(world, world.join(f"w{number}", donated=node(world)).id, after=500)
    formal = world.join("formal", time_left=300)
    assert {key.task for key in formal.running} == {1}


def test_with_choose_all_no_task_is_held_or_too_long(world: World) -> None:
    """The rule of De Rose 2008, §3: an idle node is used, whatever is likely."""
    world.terms["site"] = msgspec.structs.replace(TERMS, donation=DonationRules(choose="all"))
    world.restart()
    world.submit(1)
    for number in range(9):
        player = world.join(f"w{number}", donated=node(world, until=world.now + 10))
        assert player.running
        preempt(world, player.id, after=500)
    (demand,) = world.broker.donation_demands("site")
    assert demand.wanted.waiting == 1


def test_a_node_that_fell_silent_counts_like_one_that_was_taken(world: World) -> None:
    world.submit(1)
    for number in range(3):
        world.report(world.join(f"w{number}", donated=node(world)))
        world.now += 50
        del world.players[f"w{number}"]
        world.broker.lost(f"w{number}", AttemptOutcome.LOST, world.now, world.now)
        world.commit()
    assert world.broker.donation_demands("site") == ()


def test_a_restart_remembers_the_pilots_and_what_was_preempted(world: World) -> None:
    world.submit(2)
    world.join("w", donated=node(world))
    preempt(world, "w", after=30)
    lease = world.join("v", donated=node(world))
    before = world.broker.donation_demands("site")
    world.restart()
    assert set(world.broker.state.donated) >= {lease.pilot}
    (bag,) = world.broker.state.bags.values()
    assert bag.preempted_of(0).times == 1
    assert bag.preempted_of(0).ran == pytest.approx(30, abs=0.1)
    assert world.broker.donation_demands("site") == before


def test_a_bag_of_its_own_pilots_is_not_served_by_the_pilots_of_others(world: World) -> None:
    bag = world.submit(1)
    world.broker.keep_apart(bag)
    assert not world.join("shared", donated=node(world)).running
    player = world.join("own", pilot=99, donated=node(world))
    assert not player.running
    world.broker.own_pilot(99, bag)
    world.broker.use_node(99, node(world))
    world.report(player)
    assert player.running


@given(
    age=st.floats(0, 1e6),
    need=st.floats(1, 1e5),
    planned=st.floats(0, 1e6),
    allocation=st.sampled_from(["mixed", "transparent"]),
)
def test_whatever_is_started_fits_before_what_is_planned(
    tmp_path_factory: pytest.TempPathFactory, age: float, need: float, planned: float, allocation: str
) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    world.submit(1, allocation=allocation, time=need)
    player = world.join("w", donated=node(world, age, world.now + planned), time_left=1e6)
    if player.running:
        probability = 0.5 if allocation == "mixed" else 0.1
        estimate = world.broker.state.learner(1, "site").estimate
        assert estimate <= planned
        assert survival(IdleLearner().hazard, age, estimate) >= probability - 1e-6
    world.close()


def test_the_demand_says_how_many_tasks_are_held_for_requests(world: World) -> None:
    world.submit(3)
    (before,) = world.broker.demands("site")
    assert (before.waiting, before.formal_only) == (3, 0)
    for number in range(3):
        preempt(world, world.join(f"w{number}", donated=node(world)).id, after=1)
    (after,) = world.broker.demands("site")
    assert (after.waiting, after.formal_only) == (3, 1)
