"""What a ledger says: where budgets stand, and what bags and sites have cost."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from adaptor.budget.accounting.accounts import Accounts, Balance
from adaptor.budget.accounting.entries import Reserved
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import BudgetError


class Standing(msgspec.Struct, frozen=True):
    """What something has cost, in millionths of a credit."""

    used: int
    wasted: int
    """Of what is used: idle slots, killed attempts, losing replicas."""
    reserved: int


class Statements:
    """Reads the sums of a ledger and changes nothing. Times are epoch seconds."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    @property
    def in_use(self) -> bool:
        """Whether somebody has set a price or a budget; nobody else asks for credits."""
        return self._accounts.priced or bool(self._accounts.budgets)

    def settled(self, pilot: int) -> bool:
        """Whether a pilot was charged."""
        return pilot in self._accounts.closed

    def balances(self, now: float) -> list[Balance]:
        """Where every budget stands."""
        return [self._accounts.balance(budget, now) for budget in self._accounts.budgets.values()]

    def at_site(self, site: str) -> Standing:
        """What a site has cost since the journal began."""
        accounts = self._accounts
        wasted = accounts.wasted_by_site.get(site, 0)
        return Standing(accounts.used_at(site), wasted, accounts.reserved_at(site))

    def of_bag(self, bag: int) -> Standing:
        """What a bag has cost so far."""
        accounts = self._accounts
        wasted = accounts.wasted_by_bag.get(bag, 0)
        return Standing(accounts.used_by_bag.get(bag, 0), wasted, accounts.reserved_by_bag(bag))

    @property
    def bags(self) -> set[int]:
        """All that were ever charged, or that anything is reserved for, or that have a budget."""
        budgeted = {budget.bag for budget in self._accounts.budgets.values() if budget.bag is not None}
        return budgeted | self.bags_with_open_pilots | set(self._accounts.used_by_bag)

    @property
    def bags_with_open_pilots(self) -> set[int]:
        """Those that pay a part of a pilot that has not been settled."""
        return {part.bag for reserved in self._accounts.open.values() for part in reserved.parts}

    @property
    def sites(self) -> set[str]:
        """All that were ever paid or reserved at, or that have a price."""
        return set(self._accounts.tariffs) | self._accounts.places

    @property
    def priced(self) -> set[str]:
        """Those that have a price; one that the configuration no longer has has none."""
        return set(self._accounts.tariffs)

    def budget_of(self, bag: int) -> Balance | None:
        """Where the budget of a bag stands; None: it has none."""
        budget = self._accounts.of_bag(bag)
        return None if budget is None else self._accounts.balance(budget, -math.inf)

    def budgets_at(self, site: str, now: float) -> list[Balance]:
        """Where the budgets of a site stand."""
        return [self._accounts.balance(budget, now) for budget in self._accounts.of_site(site)]

    def tariff(self, site: str) -> Tariff:
        """What is reserved at a site now costs this. Raises BudgetError: it has no prices."""
        tariff = self._accounts.tariffs.get(site)
        if tariff is None:
            raise BudgetError(f"site {site} has no prices; give it `price` in the configuration")
        return tariff

    def open_pilots_of(self, bag: int) -> list[Reserved]:
        """The pilots that have not been settled and that a bag pays a part of."""
        return [pilot for pilot in self.open_pilots.values() if any(part.bag == bag for part in pilot.parts)]

    @property
    def open_pilots(self) -> Mapping[int, Reserved]:
        """The pilots that have not been settled."""
        return self._accounts.open
