"""The recount finds what the ledger would have let through."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from adaptor.budget.accounting.entries import Budget, Budgeted, Part, Reserved, Settled
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from tests.budget.accounting.spending import Spending, above_budget
from tests.examples import examples

TARIFF = Tariff(price_explicit=1.0, price_donated=1.0)
NOON = 1_763_726_400.0


def reserved(pilot, amount, bag=1, at=NOON):
    return Reserved(
        pilot=pilot, site="hpc", p=1, tr=1, kind="explicit", tariff=TARIFF, parts=(Part(bag, amount),), at=at
    )


def settled(pilot, amount, at=NOON, bag=1):
    return Settled(pilot=pilot, seconds=1.0, parts=(Part(bag, amount),), billed=at, at=at)


def of_bag(amount):
    return Budgeted(Budget(amount=amount, bag=1), NOON)


def of_month(amount):
    return Budgeted(Budget(amount=amount, site="hpc", calendar=Calendar("month")), NOON)


def test_reservations_and_charges_are_counted_together():
    spent = [reserved(1, 6), settled(1, 6), reserved(2, 5)]
    assert above_budget([of_bag(11), *spent], NOON) == 0
    assert above_budget([of_bag(10), *spent], NOON) == 1
    assert above_budget([Budgeted(Budget(amount=10, site="hpc"), NOON), *spent], NOON) == 1


def test_each_period_counts_by_itself():
    december = NOON + 11 * 86_400
    spent = [reserved(1, 6), settled(1, 6), reserved(2, 5, at=december)]
    assert above_budget([of_month(6), *spent], december) == 0
    assert above_budget([of_month(5), *spent], december) == 1
    assert above_budget([of_month(6), *spent, settled(2, 5, at=NOON)], december) == 1


@examples(300)
@example(6426)
@given(st.integers(0, 2**32))
def test_bags_that_share_a_site_never_exceed_a_budget(seed):
    assert Spending(seed).run().violations == 0


def test_the_bags_spend_and_are_refused():
    """Otherwise the test above would prove nothing."""
    found = [Spending(seed).run() for seed in range(60)]
    assert sum(each.pilots for each in found) > 300
    assert sum(each.refused for each in found) > 60
