"""Bags with budgets, deadlines and preferences at a simulated site, from their submission to their end."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import BudgetError
from adaptor.decisions.aims import why_paused
from adaptor_experiments.forecasts.site_run import SITE, CheckedSite, Outcome, Submitted, submitted
from adaptor_experiments.frontier.design import site_of, sites_of
from adaptor_experiments.frontier.experiment import tasks_of
from tests.examples import examples

_LATER = 1.35
"""A bag whose first tasks say otherwise is later by this factor at most, and by its longest task."""
_AMPLE = [40.0, 27, 33, 347, 36, 53, 38, 40, 88, 26, 100, 38, 197, 36, 75, 251]
_AMPLE += [28.0, 192, 457, 23, 193, 23, 107, 25, 32, 40, 50, 26, 130, 287, 38, 558]
"""With 2.3 times the work each had a host for half as long as the longest one takes: 27 of 32 were done."""
pinned = partial(examples, derandomize=True)
"""The same bags in every run; `make search` tries more of them. Each claim holds for most bags, with its
tolerance. A few break it: more budget and fewer tasks done, or a later deadline at 1.4 times the cost."""
bags = st.one_of(
    st.lists(st.floats(5, 900), min_size=20, max_size=120),
    st.builds(lambda tasks, each: [each] * tasks, st.integers(20, 120), st.floats(5, 600)),
    st.lists(st.floats(0.01, 1).map(lambda u: min(1800.0, 20 / u)), min_size=20, max_size=120),
)
"""Any tasks, equal ones, and those with a heavy tail."""
units = st.sampled_from([1, 60, 3600])


def run(tasks: list[float], *sites: CheckedSite, **wishes: object) -> Outcome:
    return begun(tasks, *sites, **wishes).run(longest=100 * 3600)


def begun(tasks: list[float], *sites: CheckedSite, **wishes: object) -> Submitted:
    return submitted(tasks, *sites, order="random", foresees=False, **wishes)  # type: ignore[arg-type]


@pinned(12)
@given(bags, units)
def test_a_fast_bag_is_as_quick_as_one_without_a_wish_and_no_other_preference_is_quicker(
    tasks: list[float], unit: int
) -> None:
    plain = run(tasks, site_of(unit))
    fast, balanced, cheap = (
        run(tasks, site_of(unit), prefer=prefer) for prefer in ("fast", "balanced", "cheap")
    )
    assert fast == plain
    assert fast.end <= min(balanced.end, cheap.end) * 1.05


@pinned(6)
@given(bags, units, st.sampled_from([None, 60.0]))
def test_a_fast_bag_is_as_quick_as_one_without_a_wish_at_two_sites_too(
    tasks: list[float], unit: int, time: float | None
) -> None:
    plain = run(tasks, *sites_of("two", unit), pays=False, time=time)
    fast = run(tasks, *sites_of("two", unit), prefer="fast", time=time)
    assert fast.end <= 1.05 * plain.end + 60


@pytest.mark.parametrize("kind", ["normal", "image", "exponential"])
def test_a_balanced_bag_of_known_mean_pays_little_for_its_speed(kind: str) -> None:
    """As many hosts at once as the site has would cost 1.2 to 1.35 times the work."""
    tasks = tasks_of(kind, 7, 0)
    plain = run(tasks, site_of(1))
    found = run(tasks, site_of(1), prefer="balanced", time=math.fsum(tasks) / len(tasks))
    assert found.cost <= 1.2 * math.fsum(tasks) / 3600
    assert found.end <= 3 * plain.end


@pinned(12)
@given(bags, units, st.floats(1.1, 3.0), st.floats(1.1, 3.0))
@example(_AMPLE, 1, 1.3, 2.3 / 1.3)
def test_more_budget_is_hardly_later_and_no_budget_is_exceeded(
    tasks: list[float], unit: int, budget: float, more: float
) -> None:
    work = math.fsum(tasks) / 3600 + unit / 3600
    less_found = run(tasks, site_of(unit), budget=budget * work)
    more_found = run(tasks, site_of(unit), budget=budget * more * work)
    assert less_found.cost <= budget * work + 1e-6
    assert more_found.cost <= budget * more * work + 1e-6
    assert more_found.done >= 0.9 * less_found.done
    if less_found.ended and more_found.ended:
        assert more_found.end <= less_found.end * _LATER + 120 + max(tasks)


@pinned(8)
@given(bags, units)
def test_a_budget_that_pays_for_far_more_than_the_bag_changes_nothing(tasks: list[float], unit: int) -> None:
    plain = run(tasks, site_of(unit))
    found = run(tasks, site_of(unit), budget=100 * max(plain.cost, 64 * unit / 3600))
    assert found.ended
    assert found.end <= 1.05 * plain.end + 60


@pytest.mark.parametrize(("budget", "later"), [(1.1, 4.5), (1.5, 1.05)])
def test_equal_tasks_of_known_time_are_done_within_a_tight_budget(budget: float, later: float) -> None:
    tasks = [200.0] * 256
    plain = run(tasks, site_of(1))
    found = run(tasks, site_of(1), budget=budget * sum(tasks) / 3600, time=200.0)
    assert found.ended
    assert found.end <= later * plain.end


@pinned(8)
@given(bags, units, st.floats(2.0, 6.0), st.floats(2.0, 4.0))
def test_a_later_deadline_is_not_dearer(tasks: list[float], unit: int, deadline: float, later: float) -> None:
    plain = run(tasks, site_of(unit)).end
    sooner_found = run(tasks, site_of(unit), deadline=deadline * plain)
    later_found = run(tasks, site_of(unit), deadline=deadline * later * plain)
    assert later_found.ended
    assert later_found.cost <= 1.35 * sooner_found.cost + 4 * unit / 3600


@pytest.mark.parametrize("kind", ["constant", "normal", "image", "exponential"])
def test_a_deadline_by_the_hour_does_not_cost_twice_the_work(kind: str) -> None:
    """All hosts are charged for one hour, and the deadline lies within it or little beyond."""
    tasks = tasks_of(kind, 2, 0)
    plain = run(tasks, site_of(1)).end
    found = run(tasks, site_of(3600), deadline=4 * plain)
    assert found.ended
    assert found.end <= 4 * plain
    assert found.cost <= 2.0 * sum(tasks) / 3600


@pytest.mark.parametrize("unit", [1, 3600])
@pytest.mark.parametrize("kind", ["constant", "image", "many-kinds", "levy"])
def test_a_bag_of_unknown_runtimes_keeps_a_deadline_of_half_as_long_again(kind: str, unit: int) -> None:
    """Its first requests leave enough of the few that the site takes."""
    tasks = tasks_of(kind, 2, 0)
    plain = run(tasks, site_of(unit)).end
    assert run(tasks, site_of(unit), deadline=1.5 * plain).end <= 1.5 * plain


def test_a_pilot_whose_task_would_end_too_late_elsewhere_goes_on_for_a_deadline() -> None:
    """The unit of a pilot with a long last task ends a few minutes before the deadline."""
    tasks = tasks_of("many-kinds", 11, 0)
    deadline = 4 * run(tasks, site_of(3600)).end
    assert run(tasks, site_of(3600), deadline=deadline).end <= deadline


def test_a_deadline_by_the_hour_pays_no_unit_of_many_hosts_for_a_last_task() -> None:
    """15 hosts do 255 of the tasks in their first hour; one host does the last one."""
    found = run([200.0] * 256, site_of(3600), deadline=6500.0, time=200.0)
    assert found.ended
    assert found.end <= 6500
    assert found.cost <= 17


@pytest.mark.parametrize(
    "wishes", [{"prefer": "cheap"}, {"prefer": "balanced"}, {"prefer": "fast"}, {"deadline": 900.0}]
)
@pytest.mark.parametrize("unit", [1, 3600])
def test_a_bag_of_one_task_costs_one_host(wishes: dict[str, object], unit: int) -> None:
    found = run([200.0], site_of(unit), **wishes)
    assert found.ended
    assert found.cost <= max(unit, 300) / 3600


def test_a_budget_below_one_charging_unit_buys_nothing_and_pauses() -> None:
    bag = begun([200.0] * 40, site_of(3600), budget=0.9)
    found = bag.run()
    assert (found.done, found.cost, found.ended) == (0, 0.0, False)
    assert "adaptor change 1 --budget" in bag.driver.decided.paused[SITE][1]


@pytest.mark.parametrize("deadline", [1.0, 20.0, 60.0])
def test_a_deadline_before_the_first_start_is_missed_as_little_as_can_be(deadline: float) -> None:
    tasks = [200.0] * 64
    assert run(tasks, site_of(60), deadline=deadline).end <= 1.1 * run(tasks, site_of(60)).end


def test_a_lowered_budget_buys_nothing_more_and_what_runs_is_paid() -> None:
    bag = begun([100.0, 300.0] * 100, site_of(1), budget=40.0)
    ledger = bag.driver.ledger
    bag.world.go_on(300)
    there, balance = len(bag.driver.crafted), ledger.budget_of(1)
    assert balance is not None
    lowest = balance.used + balance.reserved
    with pytest.raises(BudgetError, match="used or reserved already"):
        ledger.set_budget(Budget(amount=lowest - 1, bag=1), 300.0)
    ledger.set_budget(Budget(amount=lowest, bag=1), 300.0)
    assert bag.run(longest=100 * 3600).cost <= in_credits(lowest)
    assert len(bag.driver.crafted) == there


def test_a_price_that_changes_counts_for_new_pilots_and_keeps_the_budget() -> None:
    bag = begun([100.0, 300.0] * 100, site_of(1), budget=15.0)
    bag.world.go_on(300)
    dear = Tariff(price_explicit=5.0, price_donated=5.0, charging_unit=60)
    bag.driver.ledger.set_price(SITE, dear, float(bag.world.now))
    assert bag.run(longest=100 * 3600).cost <= 15.0


@pytest.mark.parametrize("unit", [1, 3600])
def test_the_donated_nodes_of_a_budget_work_side_by_side(unit: int) -> None:
    bag = submitted(
        [200.0] * 64, *sites_of("donated", unit), budget=20.0, time=200.0, order="random", foresees=False
    )
    found = bag.run(longest=8 * 3600)
    assert found.ended
    assert found.cost <= 20.0
    assert found.end <= 1200, "one node after another takes hours"


def test_a_budget_at_several_sites_buys_whole_units() -> None:
    sites = sites_of("two", 3600)
    found = submitted([200.0] * 256, *sites, budget=32.0, order="random", foresees=False).run(
        longest=8 * 3600
    )
    assert found.ended


def test_a_bag_whose_budget_holds_no_donated_node_is_paused() -> None:
    sites = sites_of("donated", 1)
    bag = submitted([200.0] * 64, *sites, budget=0.8, time=200.0, order="random", foresees=False)
    bag.run(longest=4 * 3600)
    assert "adaptor change 1 --budget" in why_paused(bag.driver.decided, 1, list(bag.driver.sites))
