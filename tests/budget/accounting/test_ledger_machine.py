"""Whatever happens, no budget is exceeded, no credit is lost, and the entries say it all."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adaptor.budget.accounting.allowance import afford
from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.entries import Budget, Entry, Settled
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import OverBudgetError
from adaptor.model import Request
from tests.budget.accounting.spending import above_budget
from tests.examples import examples

SITES = ("hpc", "other")
BAGS = (1, 2, 3)
amounts = st.integers(1, 10**9)
requests = st.builds(Request, st.integers(1, 64), st.integers(1, 50_000))
shares = st.dictionaries(st.sampled_from(BAGS), st.floats(0, 10), min_size=1)
kinds = st.sampled_from(["explicit", "donated"])


class LedgerMachine(RuleBasedStateMachine):
    @initialize(caps=st.lists(amounts, min_size=2, max_size=2), site=amounts, month=amounts)
    def open(self, caps, site, month):
        self.now, self.pilots, self.grace = 1.7e9, 0, 45
        self.ledger, self.entries = Ledger(), []
        for each in SITES:
            self.price(each, 1.5, 600)
        budgets = [Budget(amount=amount, bag=bag) for bag, amount in zip(BAGS, caps, strict=False)]
        budgets.append(Budget(amount=site, site="hpc"))
        budgets.append(Budget(amount=month, site="hpc", calendar=Calendar("month", "Europe/Lisbon")))
        for budget in budgets:
            self.entries.append(self.ledger.set_budget(budget, self.now))

    @rule(site=st.sampled_from(SITES), price=st.floats(0.01, 100), unit=st.integers(1, 3600))
    def price(self, site, price, unit):
        tariff = Tariff(price_explicit=price, price_donated=price / 3, charging_unit=unit, grace=self.grace)
        self.entries.append(self.ledger.set_price(site, tariff, self.now))

    @rule(site=st.sampled_from(SITES), wanted=requests, kind=kinds, by=shares)
    def ask(self, site, wanted, kind, by):
        allowance = self.ledger.allowance(site, kind, by, self.now)
        request = afford(allowance, wanted, Request(1, 1)).request
        if request is not None:
            self.reserve(site, request, kind, by)

    @rule(site=st.sampled_from(SITES), wanted=requests, kind=kinds, by=shares)
    def ask_without_an_allowance(self, site, wanted, kind, by):
        before = len(self.entries)
        try:
            self.reserve(site, wanted, kind, by)
        except OverBudgetError:
            assert len(self.entries) == before

    @rule(site=st.sampled_from(SITES), wanted=requests, kind=kinds, by=shares, paid=st.integers(1, 10_000))
    def ask_for_a_part(self, site, wanted, kind, by, paid):
        before = len(self.entries)
        try:
            self.reserve(site, wanted, kind, by, paid)
        except OverBudgetError:
            assert len(self.entries) == before
            return
        known = self.ledger.open_pilots[self.pilots]
        assert known.lasts == min(paid, wanted.tr + self.grace)

    def reserve(self, site, request, kind, by, paid=None):
        entry = self.ledger.reserve(self.pilots + 1, site, request, kind, by, self.now, paid=paid)
        self.entries.append(entry)
        self.pilots += 1

    @precondition(lambda self: self.ledger.open_pilots)
    @rule(data=st.data(), wanted=requests)
    def change(self, data, wanted):
        """A queued request asks for something else."""
        pilot = data.draw(st.sampled_from(sorted(self.ledger.open_pilots)))
        before, known = self.ledger.open_pilots[pilot], len(self.entries)
        left = self.ledger.without(pilot)
        allowance = left.allowance(before.site, before.kind, before.shares, self.now)
        try:
            entry = self.ledger.change(pilot, wanted, self.now)
        except OverBudgetError:
            assert len(self.entries) == known
            assert self.ledger.open_pilots[pilot] == before
            return
        self.entries.append(entry)
        assert self.ledger.open_pilots[pilot] == entry
        assert (entry.p, entry.tr, entry.tariff) == (wanted.p, wanted.tr, before.tariff)
        assert [part.bag for part in entry.parts] == [part.bag for part in before.parts]
        assert allowance.amount is None or entry.amount <= allowance.amount + len(entry.parts)

    @precondition(lambda self: self.ledger.open_pilots)
    @rule(data=st.data(), more=st.integers(1, 10_000))
    def prolong(self, data, more):
        """More of the time of a pilot is paid for."""
        pilot = data.draw(st.sampled_from(sorted(self.ledger.open_pilots)))
        before, known = self.ledger.open_pilots[pilot], len(self.entries)
        try:
            entry = self.ledger.prolong(pilot, before.lasts + more, self.now)
        except OverBudgetError:
            assert len(self.entries) == known
            assert self.ledger.open_pilots[pilot] == before
            return
        self.entries.append(entry)
        assert entry.lasts == min(before.lasts + more, before.tr + before.tariff.grace)
        assert entry.amount >= before.amount

    @precondition(lambda self: self.ledger.open_pilots)
    @rule(data=st.data(), processors=st.integers(1, 64), part=st.floats(0, 2))
    def give_back(self, data, processors, part):
        pilot = data.draw(st.sampled_from(sorted(self.ledger.open_pilots)))
        before = self.ledger.open_pilots[pilot]
        entry = self.ledger.give_back(pilot, processors, part * before.tr, self.now)
        self.entries.append(entry)
        assert before.freed <= entry.freed <= max(before.freed, entry.p)
        assert entry.amount <= before.amount

    @precondition(lambda self: self.ledger.open_pilots)
    @rule(
        data=st.data(),
        part=st.floats(-0.5, 1),
        useful=st.dictionaries(st.sampled_from(BAGS), st.floats(0, 0.3)),
        started=st.booleans(),
    )
    def end(self, data, part, useful, started):
        pilot = data.draw(st.sampled_from(sorted(self.ledger.open_pilots)))
        reserved = self.ledger.open_pilots[pilot]
        lasted = part * reserved.lasts
        area = max(0.0, lasted) * reserved.p
        uses = {bag: Use(share * area, share * area / 10) for bag, share in useful.items()}
        begin = self.now if started else None
        settled = self.ledger.settle(pilot, begin, self.now + lasted, uses, self.now + max(0, lasted))
        self.entries.append(settled)
        assert settled.amount == reserved.charge(settled.seconds) <= reserved.amount
        assert all(0 <= each.wasted <= each.amount for each in settled.parts)

    @precondition(lambda self: any(isinstance(entry, Settled) for entry in self.entries))
    @rule(data=st.data(), useful=st.dictionaries(st.sampled_from(BAGS), st.floats(0, 1e6)))
    def hear_late(self, data, useful):
        """A result of a pilot that was charged before."""
        settled = [entry for entry in self.entries if isinstance(entry, Settled)]
        pilot = data.draw(st.sampled_from(settled)).pilot
        before = [self.ledger.of_bag(bag) for bag in BAGS]
        sites = [self.ledger.at_site(each) for each in SITES]
        uses = {bag: Use(seconds) for bag, seconds in useful.items()}
        entry = self.ledger.recount(pilot, uses, self.now)
        if entry is None:
            assert [self.ledger.of_bag(bag) for bag in BAGS] == before
            return
        self.entries.append(entry)
        assert self.ledger.recount(pilot, uses, self.now) is None, "once is enough"
        assert [self.ledger.of_bag(bag).used for bag in BAGS] == [standing.used for standing in before]
        assert [self.ledger.at_site(each).used for each in SITES] == [each.used for each in sites]
        assert all(0 <= part.wasted <= part.amount for part in entry.parts)

    @rule(seconds=st.floats(-1e6, 5e6))
    def time_passes(self, seconds):
        """Or the clock is set back."""
        self.now += seconds

    @rule()
    def crash(self):
        written = msgspec.json.encode(self.entries)
        rebuilt = Ledger(msgspec.json.decode(written, type=list[Entry]))
        assert rebuilt.balances(self.now) == self.ledger.balances(self.now)
        assert rebuilt.open_pilots == self.ledger.open_pilots
        assert [rebuilt.of_bag(bag) for bag in BAGS] == [self.ledger.of_bag(bag) for bag in BAGS]
        self.ledger = rebuilt

    @invariant()
    def no_budget_is_exceeded(self):
        assert above_budget(self.entries, self.now) == 0
        assert all(balance.left >= 0 for balance in self.ledger.balances(self.now))

    @invariant()
    def every_credit_is_charged_to_a_bag(self):
        charged = sum(entry.amount for entry in self.entries if isinstance(entry, Settled))
        assert charged == sum(self.ledger.of_bag(bag).used for bag in BAGS)
        wasted = sum(self.ledger.of_bag(bag).wasted for bag in BAGS)
        assert 0 <= wasted == sum(self.ledger.at_site(each).wasted for each in SITES) <= charged
        assert charged == sum(self.ledger.at_site(each).used for each in SITES)


LedgerMachine.TestCase.settings = examples(200, stateful_step_count=30)
TestLedgerMachine = LedgerMachine.TestCase
