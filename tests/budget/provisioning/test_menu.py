"""The curve of cost against time, and the six lines that a user sees of it."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.menu import CHOICES, curve, menu, within
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

SITES = [
    site("slow", 1.0, 8, 900.0, charging_unit=3600.0),
    site("fast", 2.5, 8, 450.0, charging_unit=3600.0),
]


@examples(60)
@given(offers(), st.integers(1, 2000))
def test_more_money_is_never_slower(sites, tasks):
    lines = sorted(menu(tasks, sites, 30), key=lambda line: line.budget)
    for less, more in itertools.pairwise(lines):
        assert more.configuration.seconds <= less.configuration.seconds * (1 + 1e-9)
    for line in lines:
        assert line.configuration.cost <= line.budget * (1 + 1e-9)
        assert line.seconds.low <= line.configuration.seconds <= line.seconds.high
        assert line.cost.low <= line.configuration.cost <= line.cost.high
        for each in sites:
            assert line.configuration.processors.get(each.name, 0) <= each.processors


@examples(60)
@given(offers(), st.integers(1, 2000))
def test_a_curve_falls(sites, tasks):
    found = curve(tasks, sites)
    for cheap, dear in itertools.pairwise(found):
        assert cheap.cost < dear.cost
        assert cheap.seconds > dear.seconds


def test_no_site_is_offered_more_slots_than_there_are_tasks():
    assert curve(3, [site("many", 1.0, 64, 60.0)])[-1].processors == {"many": 3}


def test_the_menu_has_the_lines_of_the_slides():
    lines = menu(300, SITES, 30)
    assert [line.name for line in lines] == [name for name, _, _ in CHOICES]
    cheapest, fastest = lines[0].configuration, lines[-1].configuration
    assert fastest.processors == {"slow": 8, "fast": 8}
    assert "fast" not in cheapest.processors
    assert lines[1].budget == pytest.approx(1.1 * cheapest.cost)
    assert lines[4].budget == pytest.approx(0.9 * fastest.cost)


def test_the_curve_is_that_of_trying_all():
    """The equations of the slides, by hand."""
    lost = {each.name: each.lost for each in SITES}
    best = math.inf
    for slow, fast in itertools.product(range(9), range(9)):
        if not slow + fast:
            continue
        speed = slow / 900 + fast / 450
        seconds = (300 + slow * lost["slow"] / 900 + fast * lost["fast"] / 450) / speed
        cost = math.ceil(seconds / 3600 - 1e-9) * (slow + 2.5 * fast)
        if cost <= 95:
            best = min(best, seconds)
    assert within(curve(300, SITES), 95).seconds == pytest.approx(best)


def test_a_wider_spread_and_a_smaller_sample_widen_the_ranges():
    def width(deviation, sampled):
        line = menu(300, [site(deviation=deviation, charging_unit=60.0)], sampled)[0]
        return line.seconds.high - line.seconds.low

    assert width(50.0, 30) < width(200.0, 30) < width(200.0, 10)


def test_what_other_bags_have_shown_holds_within_their_factor():
    (here, *_), (there, *_) = menu(300, SITES, 30), menu(300, SITES, 30, factor=2.0)
    assert here.configuration == there.configuration
    assert there.seconds.high == pytest.approx(here.seconds.high * 2**1.645)
    assert there.seconds.low == pytest.approx(here.seconds.low / 2**1.645)


def test_too_small_a_budget_is_told_what_it_needs():
    found = curve(300, SITES)
    with pytest.raises(InfeasibleError, match="the cheapest way costs") as caught:
        within(found, found[0].cost - 0.1)
    assert caught.value.needed_credits == found[0].cost


def test_menus_that_cannot_be():
    with pytest.raises(BudgetError, match="costs nothing"):
        menu(0, SITES, 30)
    with pytest.raises(BudgetError, match="no site"):
        menu(10, [site(processors=0)], 30)
