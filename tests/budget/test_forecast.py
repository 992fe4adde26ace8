"""Forecasts, and whether they hold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.forecast import forecast, remaining_work, residual_of
from adaptor.budget.hosts import Hosts, Terms

HOURLY = Terms(unit=3600, startup=300)


def test_equal_tasks_leave_no_doubt():
    work = remaining_work([100.0] * 30, [], 50)
    assert work.low == pytest.approx(work.high) == pytest.approx(5000)


def test_running_tasks_need_only_their_rest():
    work = remaining_work([100.0] * 30, [60.0, 90.0], 0)
    assert work.value == pytest.approx(50)


def test_tasks_that_run_on_show_that_the_bag_is_longer_than_its_finished_part():
    finished = [10.0] * 15 + [100.0] * 5
    assert remaining_work(finished, [50.0] * 10, 100).value > remaining_work(finished, [], 110).value


def test_a_task_that_has_run_longer_than_all_others_is_not_done():
    assert remaining_work([90.0, 100.0, 110.0], [500.0], 0).value > 0


def test_one_finished_task_is_not_enough():
    with pytest.raises(ValueError, match="two finished tasks"):
        remaining_work([5.0], [1.0], 10)


@given(
    st.lists(st.floats(0, 1e5), min_size=2, max_size=50),
    st.lists(st.floats(0, 1e5), max_size=20),
    st.integers(0, 1000),
)
def test_the_interval_holds_its_own_value(finished, running, waiting):
    work = remaining_work(finished, running, waiting)
    assert 0 <= work.low <= work.value <= work.high
    said = forecast(work, [Hosts(3, 0, 3600)], HOURLY, 3, residual_of(finished, running), 100.0)
    assert 3 <= said.units.low <= said.units.value <= said.units.high
    assert 100 <= said.end.low <= said.end.high


@pytest.mark.parametrize(
    "drawn",
    [
        lambda chance: chance.gauss(150, 30),
        lambda chance: chance.gammavariate(3, 70),
        lambda chance: chance.expovariate(1 / 100),
        lambda chance: chance.lognormvariate(4, 0.7),
    ],
    ids=["normal", "gamma", "exponential", "log-normal"],
)
def test_the_work_lies_in_the_interval_about_nine_times_in_ten(drawn):
    chance = random.Random(11)
    held = 0
    for _ in range(400):
        work = remaining_work([drawn(chance) for _ in range(30)], [], 200)
        held += work.low <= sum(drawn(chance) for _ in range(200)) <= work.high
    assert 0.8 <= held / 400 <= 0.96


def test_what_the_hosts_have_time_for_costs_nothing_more():
    work = remaining_work([100.0] * 30, [], 20)
    said = forecast(work, [Hosts(2, 0, 3600)], HOURLY, 2, 50.0, 1000.0)
    assert said.units.low == said.units.high == 2
    assert said.end.high <= 3600


def test_the_rest_is_bought_in_units():
    work = remaining_work([100.0] * 30, [], 200)
    said = forecast(work, [Hosts(2, 0, 3600)], HOURLY, 2, 50.0, 1000.0)
    # 20,000 s of work, 2 · 2,550 s of time, 3,250 s in each further unit.
    assert said.units.value == 2 + 5
