"""The six lines of the curve of cost against time that a user sees."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.menu import CHOICES, menu
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
        assert more.seconds.value <= less.seconds.value * (1 + 1e-9)
    for line in lines:
        assert line.cost.value <= line.budget * (1 + 1e-9)
        assert line.seconds.low <= line.seconds.value <= line.seconds.high
        assert line.cost.low <= line.cost.value <= line.cost.high
        for each in sites:
            assert line.processors.get(each.name, 0) <= each.processors


@examples(60)
@given(offers(), st.integers(1, 2000))
def test_the_processors_of_a_line_are_paid_for_all_of_its_time(sites, tasks):
    """They go together, as those of a pilot: B_e of the slides."""
    by_name = {each.name: each for each in sites}
    for line in menu(tasks, sites, 30):
        costs = [count * by_name[name].cost(line.seconds.value) for name, count in line.processors.items()]
        assert line.cost.value == pytest.approx(sum(costs))


@examples(60)
@given(offers(), st.integers(1, 200))
def test_the_cheapest_of_several_sites_costs_no_more_than_that_of_one(sites, tasks):
    cheapest = menu(tasks, sites, 30)[0]
    alone = [menu(tasks, [each], 30)[0].budget for each in sites]
    assert cheapest.cost.value <= min(alone) * (1 + 1e-9)


def test_no_site_is_offered_more_slots_than_there_are_tasks():
    assert menu(3, [site("many", 1.0, 64, 60.0)], 30)[-1].processors == {"many": 3}


def test_the_menu_has_the_lines_of_the_slides():
    lines = menu(300, SITES, 30)
    assert [line.name for line in lines] == [name for name, _, _ in CHOICES]
    cheapest, fastest = lines[0], lines[-1]
    assert fastest.processors == {"slow": 8, "fast": 8}
    assert "fast" not in cheapest.processors
    assert lines[1].budget == pytest.approx(1.1 * cheapest.cost.value)
    assert lines[4].budget == pytest.approx(0.9 * fastest.cost.value)


def test_the_cheapest_pays_one_start_up_where_tasks_are_short():
    """60 tasks of 2 s, and 10 s that each pilot needs: a second slot would pay them again."""
    cheapest = menu(60, [site("near", 10.0, 8, 2.0, startup=10.0)], 30)[0]
    assert cheapest.processors == {"near": 1}
    # Until its last task has ended with a certainty above even.
    assert cheapest.cost.value == pytest.approx(130 * 10 / 3600, rel=0.02)


def test_a_wider_spread_and_a_smaller_sample_widen_the_ranges():
    def width(deviation, sampled):
        line = menu(300, [site(deviation=deviation, charging_unit=60.0)], sampled)[0]
        return line.seconds.high - line.seconds.low

    assert width(50.0, 30) < width(200.0, 30) < width(200.0, 10)


def test_what_other_bags_have_shown_holds_within_their_factor():
    (here, *_), (there, *_) = menu(300, SITES, 30), menu(300, SITES, 30, factor=2.0)
    assert here.processors == there.processors
    assert there.seconds.high == pytest.approx(here.seconds.high * 2**1.645)
    assert there.seconds.low == pytest.approx(here.seconds.low / 2**1.645)


def test_menus_that_cannot_be():
    with pytest.raises(BudgetError, match="costs nothing"):
        menu(0, SITES, 30)
    with pytest.raises(BudgetError, match="no site"):
        menu(10, [site(processors=0)], 30)
