"""The bags of a key: together they never cost more, nor hold more processors, than its limit."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.allowance import afford
from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.entries import Budget, Entry, JointLimit
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import OverBudgetError
from adaptor.model import Request
from tests.examples import examples

PRICES = Tariff(price_explicit=1.0, price_donated=0.5, charging_unit=1, grace=30)
LIMIT = JointLimit(key="agent", amount=10 * MILLION, processors=8)


def ledger(*bags: int, limit: JointLimit = LIMIT, entries: tuple[Entry, ...] = ()) -> Ledger:
    """Bags of the key, each with a budget as large as the limit."""
    books = Ledger(entries, [limit], dict.fromkeys(bags, "agent"))
    books.set_price("hpc", PRICES, 0.0)
    for bag in bags:
        books.set_budget(Budget(amount=limit.amount, bag=bag), 0.0)
    return books


def test_bags_share_the_limit_of_their_key() -> None:
    books = ledger(1, 2)
    books.reserve(1, "hpc", Request(1, 6 * 3600), "explicit", {1: 1.0}, 0.0)
    balance = books.budget_of(2)
    assert balance is not None
    assert 3 * MILLION < balance.left < 4 * MILLION
    with pytest.raises(OverBudgetError, match="key agent has"):
        books.reserve(2, "hpc", Request(1, 6 * 3600), "explicit", {2: 1.0}, 0.0)
    books.reserve(2, "hpc", Request(1, 6 * 3600), "explicit", {3: 1.0}, 0.0)  # another's


def test_pilots_hold_no_more_processors_than_the_limit() -> None:
    books = ledger(1, 2)
    books.reserve(1, "hpc", Request(6, 600), "explicit", {1: 1.0}, 0.0)
    with pytest.raises(OverBudgetError, match="the bags of key agent hold 6 of 8"):
        books.reserve(2, "hpc", Request(3, 600), "explicit", {2: 1.0}, 0.0)
    with pytest.raises(OverBudgetError):
        books.check_held(1, Request(9, 60))
    books.check_held(1, Request(8, 60))
    found = afford(books.allowance("hpc", "explicit", {2: 1.0}, 0.0), Request(64, 600), Request(1, 60))
    assert found.request == Request(2, 600)
    assert "2 of 8 processors (key agent)" in found.reason
    none = afford(books.allowance("hpc", "explicit", {2: 1.0}, 0.0), Request(64, 600), Request(4, 60))
    assert (none.request, none.crowded) == (None, True)
    assert none.reason == "the bags of key agent hold 6 of 8 processors: the smallest request has 4"
    books.settle(1, 0.0, 600.0, {}, 600.0)
    assert books.joint("agent").held == 0


def test_a_limit_that_was_lowered_gives_nothing_more() -> None:
    books = ledger(1)
    books.reserve(1, "hpc", Request(4, 3600), "explicit", {1: 1.0}, 0.0)
    books.limit_together(JointLimit(key="agent", amount=MILLION, processors=2))
    allowance = books.allowance("hpc", "explicit", {1: 1.0}, 0.0)
    assert afford(allowance, Request(1, 60), Request(1, 60)).request is None


class Spending:
    """Bags of one key spend, each in pilots of its own, as all bags with a budget do."""

    def __init__(self) -> None:
        self.books, self.bags, self.pilots, self.now = ledger(1), [1], 0, 0.0
        self.written: list[Entry] = [
            self.books.set_price("hpc", PRICES, 0.0),
            self.books.set_budget(Budget(amount=LIMIT.amount, bag=1), 0.0),
        ]

    def reserve(self, bag: int, request: Request) -> None:
        self.pilots += 1
        entry = self.books.reserve(self.pilots, "hpc", request, "explicit", {bag: 1.0}, self.now)
        self.written.append(entry)

    def afford(self, bag: int, request: Request) -> None:
        allowance = self.books.allowance("hpc", "explicit", {bag: 1.0}, self.now)
        found = afford(allowance, request, Request(1, 60)).request
        if found is not None:
            self.reserve(bag, found)

    def change(self, bag: int, request: Request) -> None:
        for pilot in self.books.open_pilots_of(bag)[:1]:
            self.written.append(self.books.change(pilot.pilot, request, self.now))

    def give_back(self, bag: int, request: Request) -> None:
        for pilot in self.books.open_pilots_of(bag)[:1]:
            entry = self.books.give_back(pilot.pilot, request.p, float(request.tr), self.now)
            self.written.append(entry)

    def settle(self, bag: int, request: Request) -> None:
        for pilot in self.books.open_pilots_of(bag)[:1]:
            ended = self.now + min(request.tr, pilot.tr)
            self.written.append(self.books.settle(pilot.pilot, self.now, ended, {bag: Use(1.0)}, ended))

    def new_bag(self, _bag: int, _request: Request) -> None:
        self.bags.append(len(self.bags) + 1)
        self.books.join(self.bags[-1], "agent")
        budget = Budget(amount=LIMIT.amount, bag=self.bags[-1])
        self.written.append(self.books.set_budget(budget, self.now))

    def crash(self, _bag: int, _request: Request) -> None:
        again = Ledger(self.written, [LIMIT], dict.fromkeys(self.bags, "agent"))
        assert again.joint("agent") == self.books.joint("agent")
        self.books = again


STEPS = ("reserve", "afford", "change", "give_back", "settle", "new_bag", "crash")
steps = st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(1, 12), st.integers(1, 20_000))


@examples(150)
@given(done=st.lists(steps, max_size=30))
def test_whatever_is_done_the_limit_holds(done: list[tuple[str, int, int, int]]) -> None:
    spending = Spending()
    for what, which, processors, seconds in done:
        spending.now += 1.0
        bag = spending.bags[which % len(spending.bags)]
        with contextlib.suppress(OverBudgetError):
            getattr(spending, what)(bag, Request(processors, seconds))
        at, books = spending.books.joint("agent"), spending.books
        standings = [books.of_bag(each) for each in spending.bags]
        assert at.used == sum(each.used for each in standings)
        assert at.reserved == sum(each.reserved for each in standings)
        assert at.held == sum(each.held for each in books.open_pilots.values()) <= LIMIT.processors
        assert at.used + at.reserved <= LIMIT.amount
