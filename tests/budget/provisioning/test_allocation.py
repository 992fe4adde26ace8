"""The least cost for a time and the least time for a cost."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.allocation import cheapest, fastest, least_time, time_of_least_cost
from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.budget.provisioning.ways import all_ways, size
from adaptor_experiments.ricciardi import equations as paper
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

some = examples(60)


def sound(found, tasks, sites):
    assert sum(holding.tasks for holding in found.holdings) >= tasks * (1 - 1e-5)
    assert found.cost == pytest.approx(sum(holding.cost for holding in found.holdings))
    for each in sites:
        assert found.processors(each.name) <= each.processors
    assert all(holding.seconds <= found.seconds + 1e-6 for holding in found.holdings)


@some
@given(offers(held=True), st.integers(1, 3000), st.floats(1.0, 5.0))
def test_the_cheapest_covers_all_tasks_in_time_and_size(sites, tasks, more):
    deadline = least_time(tasks, sites) * more
    found = cheapest(tasks, sites, deadline)
    sound(found, tasks, sites)
    assert found.seconds <= deadline


@some
@given(offers(held=True), st.integers(1, 3000), st.floats(1.0, 3.0))
def test_the_fastest_covers_all_tasks_within_the_money(sites, tasks, more):
    latest = max(each.startup + (tasks + 1) * (each.task.mean + 10 * each.task.deviation) for each in sites)
    budget = cheapest(tasks, sites, latest).cost * more
    try:
        found = fastest(tasks, sites, budget)
    except InfeasibleError:  # not even one unit
        assume(False)
    sound(found, tasks, sites)
    assert found.cost <= budget * (1 + 1e-5)


@some
@given(offers(), st.integers(1, 500), st.floats(0.05, 0.95))
def test_too_late_says_what_is_needed(sites, tasks, part):
    needed = least_time(tasks, sites)
    with pytest.raises(InfeasibleError, match="cannot be done") as caught:
        cheapest(tasks, sites, needed * part)
    assert caught.value.needed_seconds == pytest.approx(needed)
    sound(cheapest(tasks, sites, caught.value.needed_seconds), tasks, sites)


def test_too_dear_says_what_is_needed():
    sites = [site(charging_unit=3600.0), site("there", price=3.0, mean=300.0)]
    with pytest.raises(
        InfeasibleError, match=r"cost .* credits at the least, and the budget is 10"
    ) as caught:
        fastest(1000, sites, 10)
    assert fastest(1000, sites, caught.value.needed_credits).cost <= caught.value.needed_credits * (1 + 1e-6)


@examples(30)
@given(st.data())
def test_the_program_finds_what_trying_all_finds(data):
    sites = [
        msgspec.structs.replace(each, charging_unit=3600.0, processors=min(3, each.processors))
        for each in data.draw(offers(most_sites=2))
    ]
    tasks = data.draw(st.integers(1, 30))
    deadline = least_time(tasks, sites) * data.draw(st.floats(1.0, 2.0))
    ways = all_ways(sites, deadline, tasks)
    counts = [range(size(sites, way.site, way.group) + 1) for way in ways]
    if math.prod(len(each) for each in counts) > 20_000:
        return
    costs = []
    for chosen in itertools.product(*counts):
        held = {}
        for way, count in zip(ways, chosen, strict=True):
            held[way.site] = held.get(way.site, 0) + count
        done = sum(count * way.tasks for way, count in zip(ways, chosen, strict=True))
        divisible = any(sites[way.site].divisible for way in ways)
        fits = all(count <= sites[place].processors for place, count in held.items())
        if fits and done >= tasks * (1 - 1e-9) and not divisible:
            costs.append(sum(count * way.cost for way, count in zip(ways, chosen, strict=True)))
    if costs:
        assert cheapest(tasks, sites, deadline).cost == pytest.approx(min(costs), rel=2e-4)


def test_what_is_paid_already_is_used_for_nothing():
    fresh = site(charging_unit=3600.0, mean=300.0)
    held = msgspec.structs.replace(fresh, held=(HeldSlots(10, 3600.0),))
    assert cheapest(40, [fresh], 3600).cost > 0
    assert cheapest(40, [held], 3600).cost == 0


def test_dear_sites_are_left_out_where_there_is_time():
    sites = [site("cheap", mean=300.0), site("dear", price=5.0, mean=300.0)]
    assert cheapest(1000, sites, 40_000).processors("dear") == 0
    assert cheapest(1000, sites, 17_000).processors("dear") > 0


@pytest.mark.parametrize("price", [0, -1, math.inf, math.nan])
def test_prices_that_cannot_be(price):
    with pytest.raises(BudgetError, match="site here: the price must be finite and above 0"):
        site(price=price)


def test_offers_that_cannot_be():
    with pytest.raises(BudgetError, match="charging unit"):
        site(charging_unit=0.0)
    with pytest.raises(BudgetError, match=r"more processors are held \(11\)"):
        site(held=(HeldSlots(11),))
    with pytest.raises(BudgetError, match="no site has a processor"):
        cheapest(1, [site(processors=0)], 100)
    with pytest.raises(BudgetError, match="same name"):
        cheapest(1, [site(), site()], 100)


def test_a_deadline_in_the_past():
    with pytest.raises(BudgetError, match="2m in the past"):
        cheapest(1, [site()], -120)


def test_less_than_the_smallest_request_is_refused_with_the_number():
    with pytest.raises(InfeasibleError, match="the smallest, 1 processor of here for 10m, costs 2") as caught:
        fastest(1, [site(price=2.0, charging_unit=3600.0)], 1.99)
    assert caught.value.needed_credits == 2.0
    assert fastest(1, [site(price=2.0, charging_unit=3600.0)], 2.0).cost == pytest.approx(2.0)


def test_no_tasks_cost_nothing():
    assert cheapest(0, [site()], 100).holdings == fastest(0, [site()], 0).holdings == ()


def ten_sites():
    return [
        SiteOffer(
            name=f"s{number}",
            price=1 + 0.13 * number,
            processors=50 + 20 * number,
            task=TaskTime(600 * (1 - 0.05 * number), 200),
            charging_unit=(60, 900, 3600)[number % 3],
            startup=60,
        )
        for number in range(10)
    ]


def test_ten_sites_with_units_of_their_own():
    found = cheapest(20_000, ten_sites(), 4 * 3600)
    sound(found, 20_000, ten_sites())
    faster = fastest(20_000, ten_sites(), found.cost * 1.05)
    sound(faster, 20_000, ten_sites())
    assert faster.seconds < found.seconds
    assert faster.cost <= found.cost * 1.05


TABLE_2 = [
    site("Grid", 1.2 * 3600, 100, 7.0, 2.8, charging_unit=0.01),
    site("Supercomputer", 2.0 * 3600, 80, 4.0, 1.1, charging_unit=0.01),
]


def test_ours_asks_for_more_than_the_paper_as_the_last_tasks_must_end():
    theirs = sum(paper.for_time(2000, TABLE_2, 79.0))
    ours = cheapest(2000, TABLE_2, 79.0)
    assert sum(holding.processors for holding in ours.holdings) > theirs
    assert time_of_least_cost(2000, TABLE_2, least_time(2000, TABLE_2)) > 100


@some
@given(offers(), st.integers(2, 300))
def test_a_budget_for_one_processor_of_the_cheapest_site_is_enough(sites, tasks):
    """However much runtimes spread, and whatever the units: it never has to be paid for idle time."""
    best = min(sites, key=lambda each: each.cost_per_task)
    budget = best.cost(best.startup + (tasks + 2) * best.task.mean + best.charging_unit)
    found = fastest(tasks, sites, budget)
    assert found.cost <= budget * (1 + 1e-6)
