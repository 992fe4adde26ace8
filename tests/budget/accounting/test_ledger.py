"""Reserving, settling and refusing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.entries import Budget, Budgeted, Part
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.statements import Standing
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import BudgetError, OverBudgetError
from adaptor.model import Request
from adaptor.resources import PerProcessor

HOUR = 3600
NOON = 1_763_726_400.0
"""2025-11-21 12:00 UTC."""
WHOLE = Tariff(price_explicit=1.0, price_donated=0.5, charging_unit=HOUR)
NODE_HOURS = Request(4, HOUR)
ALONE = {1: 1.0}


def ledger(*budgets, tariff=WHOLE):
    made = Ledger()
    made.set_price("hpc", tariff, NOON)
    for budget in budgets:
        made.set_budget(budget, NOON)
    return made


def bag(credits, id=1):
    return Budget(amount=credits * MILLION, bag=id)


def site(credits, calendar=None):
    return Budget(amount=credits * MILLION, site="hpc", calendar=calendar)


def shown(books, now=NOON):
    return [
        (each.used / MILLION, each.reserved / MILLION, each.left / MILLION) for each in books.balances(now)
    ]


def test_the_full_request_is_reserved_and_the_rest_given_back():
    books = ledger(bag(10))
    books.reserve(1, "hpc", Request(4, 2 * HOUR), "explicit", ALONE, NOON)
    assert shown(books) == [(0, 8, 2)]
    books.settle(1, NOON, NOON + 600, {1: Use(useful=2400)}, NOON + 600)
    assert shown(books) == [(4, 0, 6)]


BY_THE_SECOND = Tariff(price_explicit=1.0, price_donated=0.5, grace=60)


def test_a_part_of_a_walltime_is_reserved_and_more_later():
    books = ledger(bag(2), tariff=BY_THE_SECOND)
    books.reserve(1, "hpc", Request(1, 10 * HOUR), "explicit", ALONE, NOON, paid=HOUR)
    assert shown(books) == [(0, 1, 1)], "its workers end it: without the grace"
    books.prolong(1, 2 * HOUR, NOON)
    assert shown(books) == [(0, 2, 0)]
    with pytest.raises(OverBudgetError):
        books.prolong(1, 2 * HOUR + 1, NOON)
    assert shown(books) == [(0, 2, 0)]


def test_all_of_a_walltime_is_reserved_with_its_grace():
    books = ledger(bag(20), tariff=BY_THE_SECOND)
    books.reserve(1, "hpc", Request(1, HOUR), "explicit", ALONE, NOON, paid=600)
    books.prolong(1, 10 * HOUR, NOON)
    assert books.open_pilots[1].paid is None
    assert books.open_pilots[1].lasts == HOUR + 60


@pytest.mark.parametrize(("tr", "reserved"), [(2 * HOUR, 1.0), (HOUR // 2 - 60, 0.5)])
def test_a_pilot_that_asks_for_something_else_is_paid_for_as_long(tr, reserved):
    books = ledger(bag(20), tariff=BY_THE_SECOND)
    books.reserve(1, "hpc", Request(1, 5 * HOUR), "explicit", ALONE, NOON, paid=HOUR)
    assert books.hold_for(1, Request(1, tr), NOON) is None, "it costs no more"
    books.change(1, Request(1, tr), NOON)
    assert shown(books)[0][1] == reserved


def test_processors_that_are_given_back_are_charged_in_whole_units_until_then():
    books = ledger(bag(10))
    books.reserve(1, "hpc", Request(4, 2 * HOUR), "explicit", ALONE, NOON)
    books.give_back(1, 3, 600, NOON + 600)
    assert shown(books) == [(0, 3 * 1 + 1 * 2, 5)]
    books.settle(1, NOON, NOON + 5000, {1: Use(useful=5000)}, NOON + 5000)
    assert shown(books) == [(5, 0, 5)]


def test_more_processors_than_a_pilot_has_are_never_given_back():
    books = ledger(bag(10))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.give_back(1, 3, 600, NOON + 600)
    books.give_back(1, 3, 900, NOON + 900)
    assert books.settle(1, NOON, NOON + HOUR, {}, NOON + HOUR).amount == 4 * MILLION


def test_pending_requests_are_counted():
    books = ledger(bag(10))
    books.reserve(1, "hpc", Request(4, 2 * HOUR), "explicit", ALONE, NOON)
    with pytest.raises(OverBudgetError, match=r"4 × 1h may cost 4 credits, and bag 1 has 2 left") as raised:
        books.reserve(2, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    assert (raised.value.needed, raised.value.left) == (4 * MILLION, 2 * MILLION)
    assert shown(books) == [(0, 8, 2)]


def test_a_pilot_that_never_started_costs_nothing():
    books = ledger(bag(4))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.settle(1, None, NOON + 5000, {}, NOON + 5000)
    assert shown(books) == [(0, 0, 4)]


def test_donated_time_is_cheaper():
    books = ledger(bag(2))
    assert books.reserve(1, "hpc", NODE_HOURS, "donated", ALONE, NOON).amount == 2 * MILLION


def test_old_pilots_keep_the_price_they_were_bought_at():
    books = ledger(bag(100))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.set_price("hpc", Tariff(price_explicit=10.0, price_donated=10.0), NOON + 60)
    assert books.reserve(2, "hpc", NODE_HOURS, "explicit", ALONE, NOON).amount == 40 * MILLION
    assert books.settle(1, NOON, NOON + HOUR, {}, NOON + HOUR).amount == 4 * MILLION


def test_a_site_budget_holds_for_all_bags_together():
    books = ledger(site(6))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", {1: 1}, NOON)
    with pytest.raises(OverBudgetError, match="site hpc has 2 left"):
        books.reserve(2, "hpc", NODE_HOURS, "explicit", {2: 1}, NOON)


def test_an_allocation_begins_anew_with_its_period():
    november, december = NOON, NOON + 11 * 86_400
    books = ledger(site(6, Calendar("month", "Europe/Lisbon")))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, november)
    books.settle(1, november, november + HOUR, {}, november + HOUR)
    assert shown(books, november) == [(4, 0, 2)]
    assert shown(books, december) == [(0, 0, 6)]


def test_an_open_reservation_counts_in_the_period_that_has_begun():
    november, december = NOON, NOON + 11 * 86_400
    books = ledger(site(6, Calendar("month", "Europe/Lisbon")))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, november)
    assert shown(books, december) == [(0, 4, 2)]
    books.settle(1, november, november + HOUR, {}, december)
    assert shown(books, december) == [(0, 0, 6)]


def test_a_clock_that_is_set_back_brings_no_period_again():
    november, december = NOON, NOON + 11 * 86_400
    books = ledger(site(6, Calendar("month", "Europe/Lisbon")))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, december)
    books.settle(1, december, december + HOUR, {}, december + HOUR)
    assert shown(books, november) == [(4, 0, 2)]


def test_what_is_reserved_while_the_clock_is_set_back_is_charged_to_the_period_that_gave_it():
    november, december = NOON, NOON + 11 * 86_400
    books = ledger(site(6, Calendar("month", "Europe/Lisbon")))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, november)
    books.settle(1, november, november + HOUR, {}, december)  # the month of which 2 are left is over
    books.reserve(2, "hpc", NODE_HOURS, "explicit", ALONE, november)
    books.settle(2, november, november + HOUR, {}, november + HOUR)
    assert shown(books, december) == [(4, 0, 2)]


@pytest.mark.parametrize("end", [NOON, NOON + 60 * 86_400])
def test_no_period_bears_what_was_not_reserved_in_it(end):
    """The scheduler's clock may differ from ours by any time."""
    november, december = NOON, NOON + 11 * 86_400
    books = ledger(site(6, Calendar("month")))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, november)
    books.settle(1, november, november + HOUR, {}, november + HOUR)
    books.reserve(2, "hpc", NODE_HOURS, "explicit", ALONE, december)
    books.settle(2, end - HOUR, end, {}, december + HOUR)
    assert shown(books, december + HOUR) == [(4, 0, 2)]


def test_an_allocation_that_is_set_later_counts_what_was_used_before():
    books = ledger()
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.settle(1, NOON, NOON + HOUR, {}, NOON + HOUR)
    with pytest.raises(BudgetError, match="per month cannot be 3: 4 credits are used or reserved already"):
        books.set_budget(site(3, Calendar("month")), NOON + HOUR)
    books.set_budget(site(5, Calendar("month")), NOON + HOUR)
    assert shown(books, NOON + HOUR) == [(4, 0, 1)]


def test_a_budget_can_be_raised_but_not_below_what_is_spoken_for():
    books = ledger(bag(4))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.set_budget(bag(9), NOON)
    assert shown(books) == [(0, 4, 5)]
    with pytest.raises(BudgetError, match="bag 1 cannot be 3"):
        books.set_budget(bag(3), NOON)


def test_a_pilot_that_two_bags_use_is_paid_by_use_with_its_idle_time():
    books = ledger()
    books.reserve(1, "hpc", NODE_HOURS, "explicit", {1: 1, 2: 1}, NOON)
    uses = {1: Use(useful=3600), 2: Use(useful=900, wasted=300)}
    settled = books.settle(1, NOON, NOON + HOUR, uses, NOON + HOUR)
    assert settled.parts == (
        Part(1, 3 * MILLION, 2 * MILLION),  # 1 of 3 processor-hours was useful
        Part(2, 1 * MILLION, 750_000),
    )
    assert books.of_bag(2) == Standing(1 * MILLION, 750_000, 0)


def test_a_pilot_in_which_nothing_ran_is_paid_by_the_shares():
    books = ledger()
    books.reserve(1, "hpc", NODE_HOURS, "explicit", {1: 3, 2: 1}, NOON)
    settled = books.settle(1, NOON, NOON + HOUR, {}, NOON + HOUR)
    assert settled.parts == (Part(1, 3 * MILLION, 3 * MILLION), Part(2, 1 * MILLION, 1 * MILLION))


def test_what_a_budget_cannot_bear_is_borne_by_the_bag_that_reserved_it():
    books = ledger(bag(1, id=2))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", {1: 1}, NOON)
    settled = books.settle(1, NOON, NOON + HOUR, {2: Use(useful=4 * HOUR)}, NOON + HOUR)
    assert [part.amount for part in settled.parts] == [3 * MILLION, 1 * MILLION]


def test_the_allowance_names_the_budget_that_leaves_the_least():
    books = ledger(bag(5), site(50), site(3, Calendar("week")))
    allowance = books.allowance("hpc", "explicit", ALONE, NOON)
    assert (allowance.amount, allowance.budget) == (3 * MILLION, "site hpc, per week")
    assert ledger().allowance("hpc", "explicit", ALONE, NOON).amount is None


@given(
    st.dictionaries(st.integers(1, 4), st.floats(0, 1), min_size=1),
    st.lists(st.integers(1, 500), min_size=4, max_size=4),
)
def test_a_shared_pilot_as_large_as_the_allowance_can_be_reserved(shares, amounts):
    a_millionth_a_second = Tariff(price_explicit=0.0036, price_donated=0.0036)
    books = ledger(
        *(Budget(amount=amount, bag=bag) for bag, amount in enumerate(amounts, 1)),
        tariff=a_millionth_a_second,
    )
    amount = books.allowance("hpc", "explicit", shares, NOON).amount
    if amount:
        books.reserve(1, "hpc", Request(1, amount), "explicit", shares, NOON)
        assert all(balance.left >= 0 for balance in books.balances(NOON))


def test_an_end_that_is_later_than_the_grace_is_charged_as_it_is_and_nothing_more_is_given():
    books = ledger(bag(4))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.settle(1, NOON, NOON + 2 * HOUR, {}, NOON + 2 * HOUR)
    assert shown(books) == [(8, 0, -4)]
    with pytest.raises(OverBudgetError, match="has 0 left"):
        books.reserve(2, "hpc", NODE_HOURS, "explicit", ALONE, NOON)


def test_what_cannot_be_asked():
    books = ledger()
    with pytest.raises(BudgetError, match="site other has no prices"):
        books.reserve(1, "other", NODE_HOURS, "explicit", ALONE, NOON)
    with pytest.raises(BudgetError, match="at least one bag"):
        books.reserve(1, "hpc", NODE_HOURS, "explicit", {}, NOON)
    with pytest.raises(BudgetError, match="a number of 0 or more"):
        books.reserve(1, "hpc", NODE_HOURS, "explicit", {1: -1}, NOON)
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    with pytest.raises(BudgetError, match="pilot 1 is reserved already"):
        books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    with pytest.raises(KeyError):
        books.settle(2, NOON, NOON, {}, NOON)


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0, "bag": 1},
        {"amount": -5, "site": "hpc"},
        {"amount": 5},
        {"amount": 5, "bag": 1, "site": "hpc"},
    ],
)
def test_budgets_that_cannot_be(wrong):
    with pytest.raises(BudgetError):
        Budget(**wrong)


def test_a_pilot_pays_for_its_gpus_whatever_the_price_is_when_it_ends():
    books = ledger(bag(100), tariff=msgspec.structs.replace(WHOLE, price_gpu=10.0))
    reserved = books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON, PerProcessor(1 / 2))
    assert (reserved.amount, reserved.gpus) == ((4 + 2 * 10) * MILLION, 2)
    books.set_price("hpc", WHOLE, NOON)
    assert books.settle(1, NOON, NOON + 60, {}, NOON + 60).amount == 24 * MILLION
    with pytest.raises(OverBudgetError):
        ledger(bag(23), tariff=msgspec.structs.replace(WHOLE, price_gpu=10.0)).reserve(
            2, "hpc", NODE_HOURS, "explicit", ALONE, NOON, PerProcessor(1 / 2)
        )


def test_a_request_that_is_altered_by_hand_is_reserved_and_charged_as_it_is():
    books = ledger(bag(10), bag(10, id=2))
    books.reserve(1, "hpc", Request(4, 2 * HOUR), "explicit", {1: 3.0, 2: 1.0}, NOON)
    books.change(1, Request(2, 2 * HOUR), NOON + 60, within=False)
    assert shown(books) == [(0, 3, 7), (0, 1, 9)]
    books.settle(1, NOON, NOON + 600, {1: Use(useful=1200)}, NOON + 600)
    assert shown(books) == [(2, 0, 8), (0, 0, 10)]


def test_an_alteration_beyond_the_budget_counts_and_nothing_more_is_given():
    books = ledger(bag(10))
    books.reserve(1, "hpc", Request(4, 2 * HOUR), "explicit", ALONE, NOON)
    books.change(1, Request(16, HOUR), NOON, within=False)
    assert shown(books) == [(0, 16, -6)]
    with pytest.raises(OverBudgetError, match="bag 1 has 0 left"):
        books.reserve(2, "hpc", NODE_HOURS, "explicit", ALONE, NOON)


def test_what_the_scheduler_may_round_up_is_reserved_and_what_it_gave_is_charged():
    books = ledger(bag(16), tariff=msgspec.structs.replace(WHOLE, price_gpu=1.0))
    reserved = books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON, PerProcessor(1 / 2, held=3.0))
    assert (reserved.p, reserved.amount) == (4, (12 + 2) * MILLION)
    held = books.hold(1, 8, NOON)
    assert held is not None
    assert (held.p, held.gpus, held.amount) == (8, 2, (8 + 2) * MILLION)
    assert books.hold(1, 8, NOON) is None
    copy = Ledger([*[Budgeted(bag(16), NOON)], reserved, held])
    assert copy.open_pilots == books.open_pilots
    assert books.settle(1, NOON, NOON + 60, {1: Use(useful=240)}, NOON + 60).amount == 10 * MILLION


def test_a_pilot_that_got_more_than_a_budget_holds_is_charged_for_it():
    books = ledger(bag(4))
    books.reserve(1, "hpc", NODE_HOURS, "explicit", ALONE, NOON)
    books.hold(1, 8, NOON)
    assert books.budget_of(1).left == -4 * MILLION
    with pytest.raises(OverBudgetError):
        books.reserve(2, "hpc", Request(1, HOUR), "explicit", ALONE, NOON)
