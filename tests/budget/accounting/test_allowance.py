"""Requests are cut to what a budget still holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.allowance import Allowance, afford
from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Request

HOURLY = Tariff(price_explicit=1.0, price_donated=0.5, charging_unit=3600)


def allowance(credits, tariff=HOURLY):
    amount = None if credits is None else round(credits * MILLION)
    return Allowance(tariff=tariff, kind="explicit", amount=amount, budget="bag 7")


def test_without_a_budget_all_is_affordable():
    wanted = Request(64, 7200)
    assert afford(allowance(None), wanted, Request(1, 60)).request == wanted


@pytest.mark.parametrize(
    ("credits", "request_"),
    [
        (128, Request(64, 7200)),
        (127, Request(64, 3600)),
        (64, Request(64, 3600)),
        (63, Request(60, 3600)),
        (8, Request(8, 3600)),
        (7.9, Request(4, 3600)),
        (4, Request(4, 3600)),
        (3.9, None),
    ],
)
def test_time_is_cut_first_and_then_processors(credits, request_):
    assert afford(allowance(credits), Request(64, 7200), Request(4, 1800)).request == request_


def test_a_budget_below_the_smallest_request_is_refused_with_the_number_needed():
    answer = afford(allowance(3.9), Request(64, 7200), Request(4, 1800))
    assert answer.request is None
    assert answer.needed == 4 * MILLION
    assert answer.reason == (
        "3.9 credits are left (bag 7): the smallest request, 4 × 30m, needs 4 (charged in units of 1h)"
    )


def test_a_cut_says_from_what_to_what():
    answer = afford(allowance(8), Request(64, 7200), Request(4, 1800))
    assert answer.reason == "cut from 64 × 2h to 8 × 1h (8 credits): 8 credits are left (bag 7)"


@given(
    st.integers(0, 10**9),
    st.builds(Request, st.integers(1, 128), st.integers(60, 100_000)),
    st.integers(1, 8),
    st.integers(1, 3600),
    st.integers(0, 60),
)
def test_what_is_afforded_fits_and_nothing_is_withheld(amount, wanted, least, unit, grace):
    tariff = Tariff(price_explicit=0.7, price_donated=0.7, charging_unit=unit, grace=grace)
    limits = Allowance(tariff=tariff, kind="explicit", amount=amount, budget="bag 1")
    smallest = Request(min(least, wanted.p), 60)
    answer = afford(limits, wanted, smallest)
    if answer.request is None:
        assert answer.needed > amount
        assert answer.needed == tariff.reservation("explicit", smallest.p, smallest.tr)
    else:
        assert answer.needed <= amount
        assert smallest.p <= answer.request.p <= wanted.p
        assert smallest.tr <= answer.request.tr <= wanted.tr
        assert answer.request.p == wanted.p or answer.request.p % smallest.p == 0


def test_what_is_cut_is_named_in_the_resolution_of_the_scheduler() -> None:
    tariff = Tariff(price_explicit=10, price_donated=1, grace=90)
    allowance = Allowance(tariff=tariff, kind="explicit", amount=1_400_000, budget="bag 1")
    answer = afford(allowance, Request(4, 7200), Request(1, 60), resolution=60)
    assert answer.request == Request(3, 60)
    assert answer.needed == tariff.reservation("explicit", 3, 60)
    assert answer.reason.startswith("cut from 4 × 2h to 3 × 1m (1.25 credits): 1.4 credits are left")
