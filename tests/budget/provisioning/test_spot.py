"""Preemptible capacity at its own price."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.spot import bid, break_even, with_preemptible
from tests.budget.provisioning.offer_strategies import offers, site

FORMAL = [site("formal", 3.0, mean=300.0), site("dear", 9.0, mean=200.0)]


def test_the_break_even_of_the_slides():
    spot = site("spot", 0.5, mean=600.0)
    assert break_even(spot, FORMAL) == pytest.approx(300 / 600 * 3.0)
    assert break_even(spot, FORMAL, less=0.1) == pytest.approx(1.4)


def test_a_start_up_in_each_unit_lowers_the_break_even():
    quick = site("spot", 0.5, mean=600.0, charging_unit=3600.0)
    slow = site("spot", 0.5, mean=600.0, charging_unit=3600.0, startup=480.0)
    assert break_even(slow, FORMAL) == pytest.approx(break_even(quick, FORMAL) * (3600 - 480) / 3600)


@given(offers(), st.floats(0.01, 20))
def test_beyond_the_break_even_it_does_not_pay(others, price):
    spot = site("spot", price, mean=600.0)
    assert (spot in with_preemptible(others, [spot])) == (price <= break_even(spot, others))


def test_lost_time_makes_tasks_longer():
    (found,) = (
        each for each in with_preemptible(FORMAL, [site("spot", 0.5, mean=600.0)], 0.5) if each.name == "spot"
    )
    assert found.task.mean == pytest.approx(1200)
    assert len(with_preemptible(FORMAL, [site("spot", 1.0, mean=600.0)], 0.5)) == 2


def test_bids():
    assert [bid(how, 1.0, 2.0) for how in ("maximum", "current", "average")] == [2.0, 1.0, 1.5]
    assert bid("maximum", 2.1, 2.0) is None


def test_nothing_to_compare_with():
    with pytest.raises(BudgetError, match="nothing to compare"):
        break_even(site(), [])
    with pytest.raises(BudgetError, match="taken back"):
        with_preemptible(FORMAL, [], 1.0)
