"""Forecasts of units and of the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.forecast import CONFIDENCE, estimate
from adaptor.budget.estimation.remaining_work import Rest, possible_rests
from adaptor.budget.provisioning.hosts import Hosts, Terms
from adaptor.experiments.a2ha.host_forecast import forecast

HOURLY = Terms(unit=3600, startup=300)


def test_the_interval_leaves_a_twentieth_out_at_each_end() -> None:
    said = estimate(float(case) for case in range(1, 101))
    assert (said.low, said.value, said.high) == (5, 50, 95)
    assert estimate([7.0]) == estimate([7.0, 7.0])


@given(
    st.lists(st.floats(0, 1e5), min_size=2, max_size=50),
    st.lists(st.floats(0, 1e5), max_size=20),
    st.integers(0, 1000),
)
def test_intervals_hold_their_own_value(finished: list[float], running: list[float], waiting: int) -> None:
    rests = possible_rests(finished, running, waiting, HOURLY.usable)
    said = forecast(rests, [Hosts(3, 0, 3600)], HOURLY, 3, 100.0)
    assert 3 <= said.units.low <= said.units.value <= said.units.high
    assert 0 < said.said <= 1
    assert 100 <= said.end.low <= said.end.value <= said.end.high


def test_what_the_hosts_have_time_for_costs_nothing_more() -> None:
    said = forecast([Rest(2000.0, 50.0)] * 20, [Hosts(2, 0, 3600)], HOURLY, 2, 1000.0)
    assert said.units.low == said.units.high == 2
    assert said.said == 1
    assert said.end.high <= 3600


def test_the_rest_is_bought_in_units() -> None:
    said = forecast([Rest(20_000.0, 50.0)] * 100, [Hosts(2, 0, 3600)], HOURLY, 2, 1000.0)
    # 20,000 s of work, 2 · 2,550 s of time, 3,250 s in each further unit: 4.6, and up to one that idles.
    assert (said.units.low, said.units.high) == (2 + 5, 2 + 6)


def test_nothing_is_left_to_pay_for() -> None:
    said = forecast([Rest(0.0, 50.0)] * 20, [], HOURLY, 7, 1000.0)
    assert (said.units.low, said.units.high, said.end.high) == (7, 7, 1000.0)


def test_of_whole_units_the_interval_is_the_one_that_is_nearest_to_nine_in_ten() -> None:
    """Of a hundred cases seven need 1 unit and four 17 or more: with those of 1 it would hold 96."""
    cases = [30.0] * 7 + [4000.0] * 89 + [60_000.0] * 4
    said = forecast([Rest(case, 0.0) for case in cases], [], Terms(unit=3600), 0, 0.0)
    assert (said.units.low, said.units.high) == (2, 3)
    assert said.said == pytest.approx(CONFIDENCE, abs=0.02)
