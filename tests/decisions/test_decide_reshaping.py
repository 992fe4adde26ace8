"""A queued request becomes what the budgets hold without its own reservation."""

from __future__ import annotations

from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import Reshape, Withdraw, Withhold
from adaptor.decisions.actions import Action
from adaptor.decisions.decide import decide
from adaptor.model import Request
from tests.crafting.test_reshaping import busy, waiting
from tests.decisions.test_decide import snapshot_of


def decided(credits: float | None, p: int = 4) -> tuple[list[Action], Ledger]:
    """For a pilot of p × 600 s; four tasks that need 1,800 s each cost 2.07 credits on 4 processors."""
    ledger = Ledger()
    ledger.set_price("here", Tariff(price_explicit=1.0, price_donated=1.0), 0.0)
    ledger.reserve(1, "here", Request(p, 600), "explicit", {1: 4.0}, 0.0)
    if credits is not None:
        ledger.set_budget(Budget(amount=int(credits * MILLION), bag=1), 0.0)
    return list(decide(snapshot_of(busy(waiting(1, p, 600)), ledger)).actions), ledger


def test_without_a_budget_it_becomes_what_the_planner_wants() -> None:
    (action,), _ = decided(None)
    assert isinstance(action, Reshape)
    assert (action.pilot, action.crafted.request) == (1, Request(4, 1860))


def test_its_own_reservation_counts_as_free() -> None:
    (action,), ledger = decided(2.1)
    assert isinstance(action, Reshape)
    assert action.crafted.request == Request(4, 1860)
    assert ledger.of_bag(1).reserved == 666_667, "deciding sets nothing aside"


def test_it_is_cut_to_the_budget() -> None:
    (action,), _ = decided(1.2)
    assert isinstance(action, Reshape)
    assert action.crafted.request == Request(2, 1860)
    assert "bag 1" in action.crafted.reason


def test_a_request_that_is_useless_and_not_to_be_paid_otherwise_is_withdrawn() -> None:
    (why, action), _ = decided(0.3, p=1)
    assert isinstance(why, Withhold)
    assert "bag 1" in why.reason
    assert isinstance(action, Withdraw)
    assert action.pilot == 1
