"""Pilots of bags with a budget whose walltime is paid for in parts, at a simulated site."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.tariffs import HOUR, Tariff
from adaptor.crafting.heuristics import HEURISTICS, HeuristicName
from adaptor.crafting.situation import SubmitRequest, Withdraw
from adaptor.decisions.actions import End, Prolong
from adaptor.decisions.pilot_rules import on_pilots
from adaptor.decisions.prolonging import LOOKS, due_soon, why_unpaid
from adaptor.decisions.snapshot import Snapshot
from adaptor.model import Limits, PilotState, Request
from adaptor.protocol.messages import LAST_SECONDS
from adaptor_experiments.forecasts.site_run import SITE, CheckedSite, Submitted, submitted
from adaptor_simulation.jobs import Jobs

STARTUP = 15


def paying(
    runtimes: list[float], hours: float, processors: int = 16, unit: int = 1, held: int = 0
) -> Submitted:
    """A bag with this budget, in processor-hours, of whose runtimes nothing is known.

    `held`: processors that another job holds for the first ten minutes.
    """
    number, first, seconds = np.array([1]), np.array([0]), np.array([600])
    other = Jobs(number=number, submit=first, run=seconds, estimate=seconds, processors=np.array([held]))
    site = CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=unit),
        processors=processors,
        limits=Limits(max_pending_requests=4, max_pilots=200, max_proc=processors, max_tr=24 * 3600),
        heuristic="elastic",
        initial_tr=3600.0,
        startup=STARTUP,
        jobs=other if held else Jobs.none(),
    )
    return submitted(runtimes, site, budget=hours, order="random", foresees=False)


def hours_of(runtimes: list[float]) -> float:
    """What a pilot for each task takes."""
    return math.fsum(each + STARTUP for each in runtimes) / HOUR


def cut(bag: Submitted) -> int:
    """Tasks that were started more than once."""
    return sum(bag.bag.attempts(task) > 1 for task in range(bag.bag.total))


def test_a_long_task_goes_on_with_what_short_ones_give_back() -> None:
    runtimes = [60.0] * 15 + [1500.0]
    bag = paying(runtimes, 1.2 * hours_of(runtimes))
    outcome = bag.run()
    assert outcome.done == 16
    assert outcome.end <= 1500 + 2 * STARTUP
    assert cut(bag) == 0
    assert outcome.cost <= 1.05 * hours_of(runtimes)
    first = next(each.action for each in bag.driver.log if isinstance(each.action, SubmitRequest))
    assert first.crafted.paid is not None
    assert first.crafted.paid < 1500 < first.crafted.request.tr
    assert {each.action.pilot for each in bag.driver.log if isinstance(each.action, Prolong)}


def test_equal_tasks_get_equal_parts() -> None:
    """Those whose time was over first got all, and the others were cut just before their ends."""
    runtimes = [984.0] * 13
    bag = paying(runtimes, 1.25 * hours_of(runtimes))
    outcome = bag.run()
    assert (outcome.done, outcome.end, cut(bag)) == (13, 984.0 + STARTUP, 0)
    assert outcome.cost <= 1.01 * hours_of(runtimes)


def test_queued_pilots_leave_their_money_to_those_that_run() -> None:
    runtimes = [float(20 + 7 * (5 * task % 13)) for task in range(20)]
    bag = paying(runtimes, 0.9 * hours_of(runtimes), held=8)
    outcome = bag.run()
    assert outcome.done == 20
    assert any(
        isinstance(each.action, Withdraw) and "pilots that run already" in each.action.reason
        for each in bag.driver.log
    )


def test_pilots_that_wait_while_nothing_is_known_are_not_made_again_and_again() -> None:
    """Each look withdrew those that were shorter than what the budget pays for a task: 910 in 50 minutes."""
    runtimes = [float(160 + 56 * (task % 13)) for task in range(64)]
    bag = paying(runtimes, 1.1 * hours_of(runtimes), held=12)
    assert bag.run().done == 64
    assert sum(isinstance(each.action, Withdraw) for each in bag.driver.log) < 64


def test_the_first_pilots_share_what_is_left_if_the_machine_runs_no_more() -> None:
    """Queued ones had a part that those which ran lacked: their tasks were cut."""
    runtimes = [float(10 + 2 * (task % 5)) for task in range(40)]
    bag = paying(runtimes, 1.2 * hours_of(runtimes))
    bag.world.go_on(1)
    assert len(bag.driver.sites[SITE].requests) == 16
    assert (bag.run().done, cut(bag)) == (40, 0)


def test_begun_units_are_paid_for_anyway() -> None:
    runtimes = [1800.0] * 8
    bag = paying(runtimes, 8.0, unit=HOUR)
    assert bag.run().done == 8
    parts = {each.action.crafted.paid for each in bag.driver.log if isinstance(each.action, SubmitRequest)}
    assert parts == {HOUR}


def running(seconds: int) -> Submitted:
    """A bag of equal tasks of an hour with little more money than they need, after some time."""
    bag = paying([3600.0] * 4, 1.1 * hours_of([3600.0] * 4))
    while bag.world.now < seconds:
        bag.world.go_on(seconds)
    return bag


def paid_for(bag: Submitted) -> float:
    """Seconds for which each of its pilots, which start at 0, is paid for."""
    (paid,) = {known.paid for known in bag.driver.ledger.open_pilots.values()}
    assert paid is not None
    return float(paid)


def at(snapshot: Snapshot, now: float) -> Snapshot:
    """The same site at another instant."""
    here = msgspec.structs.replace(snapshot.here, now=now)
    return msgspec.structs.replace(snapshot, sites={snapshot.site: here})


def test_no_more_is_paid_for_before_the_paid_time_is_nearly_over() -> None:
    bag = running(600)
    snapshot = bag.driver.snapshot(SITE, 600.0)
    reserved = bag.driver.ledger.open_pilots
    assert len(reserved) == 4
    assert not due_soon(snapshot)
    over = paid_for(bag) - LAST_SECONDS - LOOKS * snapshot.here.poll
    later = at(snapshot, over)
    assert {due.pilot.id for due in due_soon(later)} == set(reserved)


def unpaid(snapshot: Snapshot) -> set[int]:
    return {pilot.id for pilot in snapshot.here.requests if why_unpaid(snapshot, pilot)}


def test_a_pilot_that_outlasts_what_is_paid_for_is_ended() -> None:
    """Its workers do not answer, else they would have ended it."""
    bag = running(600)
    snapshot = bag.driver.snapshot(SITE, 600.0)
    assert not unpaid(snapshot)
    late = at(snapshot, paid_for(bag) + snapshot.here.poll + 1.0)
    assert unpaid(late) == set(bag.driver.ledger.open_pilots)
    assert unpaid(late) <= {each.pilot for each in on_pilots(late) if isinstance(each, End)}


def test_pilots_that_wait_or_have_nothing_to_do_are_paid_for_no_longer() -> None:
    bag = running(600)
    snapshot = bag.driver.snapshot(SITE, 600.0)
    over = at(snapshot, 100_000.0)
    assert due_soon(over)
    (facts,) = snapshot.bags.values()
    idle = msgspec.structs.replace(over, bags={facts.id: msgspec.structs.replace(facts, by_pilot={})})
    assert not due_soon(idle)
    here = snapshot.here
    queued = [pilot.but(state=PilotState.QUEUED) for pilot in here.requests]
    waiting = {SITE: msgspec.structs.replace(here, requests=tuple(queued))}
    assert not due_soon(msgspec.structs.replace(over, sites=waiting))


@settings(max_examples=40, deadline=None)
@given(
    runtimes=st.lists(st.integers(1, 3000).map(float), min_size=1, max_size=40),
    multiple=st.floats(0.2, 3.0),
    processors=st.sampled_from([2, 8, 64]),
    unit=st.sampled_from([1, 60, 3600]),
)
def test_no_budget_is_exceeded(runtimes: list[float], multiple: float, processors: int, unit: int) -> None:
    budget = multiple * hours_of(runtimes) + 0.02
    bag = paying(runtimes, budget, processors, unit)
    outcome = bag.run(longest=100 * HOUR)
    assert outcome.cost <= budget * (1 + 1e-9)
    known = bag.driver.ledger.of_bag(bag.bag.id)
    assert in_credits(known.used) <= budget * (1 + 1e-9)
    assert known.reserved == 0 or not outcome.ended


def test_what_is_added_is_set_aside_and_no_more_than_the_walltime() -> None:
    bag = paying([60.0] * 30 + [2000.0], 0.75)
    bag.run()
    added = Counter[int]()
    for each in bag.driver.log:
        if isinstance(each.action, Prolong):
            assert each.action.paid > added[each.action.pilot]
            assert each.action.paid <= bag.driver.crafted[each.action.pilot].request.tr
            added[each.action.pilot] = each.action.paid


def wide(heuristic: HeuristicName, tasks: list[float], budget: float | None = None) -> Submitted:
    """A bag at a site of 64 processors that takes four requests of 16; nothing is known of its runtimes."""
    site = CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0),
        processors=64,
        limits=Limits(max_pending_requests=4, max_proc=16, max_tr=24 * 3600),
        heuristic=heuristic,
        initial_tr=HEURISTICS[heuristic].assumed_runtime,
    )
    return submitted(tasks, site, budget=budget, order="random", pays=budget is not None, foresees=False)


@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize(("tasks", "seconds"), [(62, 1200.0), (67, 200.0)])
def test_a_budget_that_does_not_bind_leaves_wide_requests_as_they_are(
    heuristic: HeuristicName, tasks: int, seconds: float
) -> None:
    """Walltimes were cut to what the budget paid for, and the tasks that took longer began again."""
    runtimes = [seconds * (0.5 + task % 7 / 6) for task in range(tasks)]
    plain = wide(heuristic, runtimes)
    without = plain.run()
    bag = wide(heuristic, runtimes, 1.5 * without.cost)
    found = bag.run()
    assert requests_of(bag) == requests_of(plain)
    assert (found.done, found.end, found.cost) == (tasks, without.end, without.cost)


def requests_of(bag: Submitted) -> list[Request]:
    return [each.action.crafted.request for each in bag.driver.log if isinstance(each.action, SubmitRequest)]
