"""Pilot time becomes credits."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.credits import MILLION, format_credits, in_credits, millionths
from adaptor.budget.accounting.tariffs import Tariff, held_seconds
from adaptor.budget.errors import BudgetError
from adaptor.errors import UsageError
from adaptor.resources import PerProcessor


def tariff(**given_values):
    return Tariff(**{"price_explicit": 1.0, "price_donated": 0.25, **given_values})


tariffs = st.builds(
    lambda explicit, share, unit, grace: Tariff(
        price_explicit=explicit,
        price_donated=max(explicit * share, 1e-6),
        charging_unit=unit,
        grace=grace,
    ),
    st.floats(0.001, 1000),
    st.floats(0, 1),
    st.integers(1, 3600),
    st.integers(0, 300),
)


@pytest.mark.parametrize(
    ("seconds", "unit", "charged"),
    [(0, 60, 0), (1, 60, 60), (60, 60, 60), (61, 60, 120), (3599, 3600, 3600), (7, 1, 7), (0.4, 1, 1)],
)
def test_begun_units_are_charged_whole(seconds, unit, charged):
    assert tariff(charging_unit=unit).charged_seconds(seconds) == charged


def test_noise_of_the_clock_begins_no_unit():
    started = 1_763_722_668.1
    assert tariff(charging_unit=60).charged_seconds((started + 60) - started + 1e-7) == 60


def test_a_pilot_costs_processors_times_charged_time_times_price():
    assert tariff(charging_unit=3600).charge("explicit", 8, 3601) == 16 * MILLION
    assert tariff(charging_unit=3600).charge("donated", 8, 3601) == 4 * MILLION


def test_a_fraction_of_a_millionth_counts_whole():
    assert Tariff(price_explicit=0.000001, price_donated=0.000001).charge("explicit", 1, 1) == 1


def test_the_grace_is_reserved_too():
    assert tariff(grace=60).reservation("explicit", 60, 3540) == 60 * MILLION


def test_a_clock_that_steps_back_charges_nothing():
    assert held_seconds(1000.0, 400.0) == 0
    assert held_seconds(None, 400.0) == 0
    assert tariff().charge("explicit", 4, -600) == 0


@given(tariffs, st.integers(1, 512), st.integers(1, 200_000), st.floats(0, 1))
def test_a_pilot_that_ends_in_time_costs_at_most_its_reservation(prices, p, tr, part):
    ran = part * (tr + prices.grace)
    for kind in ("explicit", "donated"):
        assert 0 <= prices.charge(kind, p, ran) <= prices.reservation(kind, p, tr)
    assert prices.charge("donated", p, ran) <= prices.charge("explicit", p, ran)


@given(tariffs, st.integers(0, 10**12), st.integers(1, 100_000), st.integers(1, 1000))
def test_what_is_affordable_is_the_most_that_is(prices, amount, tr, p):
    processors = prices.affordable_processors("explicit", amount, tr)
    assert prices.reservation("explicit", processors, tr) <= amount
    assert prices.reservation("explicit", processors + 1, tr) > amount
    longest = prices.affordable_seconds("explicit", amount, p)
    if longest:
        assert prices.reservation("explicit", p, longest) <= amount
        assert prices.reservation("explicit", p, longest + 1) > amount


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"price_explicit": 0.0}, "price_explicit"),
        ({"price_explicit": -1.0}, "price_explicit"),
        ({"price_explicit": float("nan")}, "price_explicit"),
        ({"price_explicit": float("inf")}, "price_explicit"),
        ({"price_donated": 0.0}, "price_donated"),
        ({"price_donated": 1e-9}, "price_donated"),
        ({"price_donated": 2.0}, "above price_explicit"),
        ({"charging_unit": 0}, "charging_unit must be from 1 s to 1 h"),
        ({"charging_unit": 3601}, "charging_unit must be from 1 s to 1 h"),
        ({"grace": -1}, "grace"),
    ],
)
def test_prices_that_cannot_be(wrong, named):
    with pytest.raises(BudgetError, match=named) as raised:
        tariff(**wrong)
    assert isinstance(raised.value, UsageError)


def test_a_wrong_price_in_a_file_is_located():
    with pytest.raises(msgspec.ValidationError, match=r"price_donated.* - at `\$.prices`"):
        msgspec.convert(
            {"prices": {"price_explicit": 1, "price_donated": -3}},
            msgspec.defstruct("File", [("prices", Tariff)]),
        )


@pytest.mark.parametrize(
    ("amount", "text"), [(12_500_000, "12.5"), (1_200 * MILLION, "1,200"), (1, "0.000001"), (0, "0")]
)
def test_credits_for_people(amount, text):
    assert format_credits(amount) == text


def test_credits_come_in_millionths():
    assert millionths(0.1, "x") == 100_000
    assert in_credits(100_000) == 0.1
    with pytest.raises(BudgetError, match="the budget must be a number above 0"):
        millionths(True, "the budget")


def test_gpus_are_paid_with_the_processors_that_go_with_them():
    with_gpus = tariff(price_gpu=20.0).of_pilots(PerProcessor(1 / 4))
    assert with_gpus.charge("explicit", 8, 3600) == (8 + 2 * 20) * MILLION
    assert with_gpus.charge("donated", 8, 3600) == (8 + 2 * 20) * MILLION // 4
    assert tariff(price_gpu=20.0).charge("explicit", 8, 3600) == 8 * MILLION
    assert tariff().of_pilots(PerProcessor(1.0)).charge("explicit", 8, 3600) == 8 * MILLION


@given(
    tariffs,
    st.floats(0, 1000),
    st.integers(0, 8),
    st.integers(1, 64),
    st.integers(1, 20),
    st.integers(0, 10**6),
)
def test_a_pilot_costs_what_its_processors_and_its_gpus_cost(
    given_tariff, price, gpus, processors, units, seconds
):
    with_price = msgspec.structs.replace(given_tariff, price_gpu=price)
    together = with_price.of_pilots(PerProcessor(gpus / processors)).charge(
        "explicit", units * processors, seconds
    )
    hours = with_price.charged_seconds(seconds) / 3600
    expected = units * (processors * given_tariff.price_explicit + gpus * price) * hours * MILLION
    assert together == pytest.approx(expected, abs=1 + units * processors * hours)


@pytest.mark.parametrize("values", [{"price_gpu": -1.0}, {"price_gpu": float("nan")}, {"gpus": -0.5}])
def test_prices_of_gpus_that_cannot_be(values):
    with pytest.raises(BudgetError, match="must be a number of 0 or more"):
        tariff(**values)
