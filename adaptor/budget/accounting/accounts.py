"""The sums of a ledger: what is used and reserved, by bag, by site and by calendar period."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from adaptor.budget.accounting.entries import (
    Budget,
    Budgeted,
    BudgetKey,
    Entry,
    Part,
    Past,
    Priced,
    Recounted,
    Reserved,
    Settled,
)
from adaptor.budget.accounting.past import SettledPilot, billing_step
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff


class Balance(msgspec.Struct, frozen=True):
    """Where a budget stands, in millionths of a credit."""

    budget: Budget
    used: int
    reserved: int
    """By pilots queued and running, in full."""

    @property
    def left(self) -> int:
        """Below 0 only if a pilot ran on beyond its tr and the grace of its site, or was altered by hand."""
        return self.budget.amount - self.used - self.reserved


RECENT = 200
"""Settled pilots that are kept one by one, for results that come late."""


class Accounts:
    """Every entry is applied here once; nothing is checked.

    A calendar period bears what is billed in it and, while it lasts, all open reservations. The latest
    instant seen counts as now where the clock has been set back, so no period comes again.
    """

    def __init__(self) -> None:
        self.budgets: dict[BudgetKey, Budget] = {}
        self.tariffs: dict[str, Tariff] = {}
        self.open: dict[int, Reserved] = {}
        """Reservations by pilot, with the parts that hold now."""
        self.closed: dict[int, SettledPilot] = {}
        """Pilots that were settled, the newest last; older ones are only in the journal (`RECENT`)."""
        self.used_by_bag: dict[int, int] = defaultdict(int)
        self.wasted_by_bag: dict[int, int] = defaultdict(int)
        self.priced = False
        """Whether any entry has a price that somebody has set."""
        self.latest = -math.inf
        self.wasted_by_site: dict[str, int] = defaultdict(int)
        self._used_by_site: dict[str, int] = defaultdict(int)
        self._reserved_by_bag: dict[int, int] = defaultdict(int)
        self._reserved_by_site: dict[str, int] = defaultdict(int)
        self._bills: dict[str, dict[float, int]] = defaultdict(dict)
        """By site, then by billing step."""
        self._used_in: dict[tuple[str, Calendar], dict[str, int]] = {}

    def fork(self) -> Accounts:
        """An independent copy for planning: all sums, without the pilots that were settled."""
        copy = Accounts()
        copy.budgets, copy.tariffs, copy.open = self.budgets.copy(), self.tariffs.copy(), self.open.copy()
        for sums in ("used_by_bag", "_used_by_site", "_reserved_by_bag", "_reserved_by_site"):
            getattr(copy, sums).update(getattr(self, sums))
        for budget in self.budgets.values():
            if budget.calendar and budget.site is not None:
                used = self._by_period(budget.site, budget.calendar)
                copy._used_in[budget.site, budget.calendar] = defaultdict(int, used)
        copy.latest, copy.priced = self.latest, self.priced
        return copy

    def apply(self, entry: Entry) -> None:
        self.latest = max(self.latest, entry.at)
        if isinstance(entry, Budgeted):
            self.budgets[entry.budget.key] = entry.budget
        elif isinstance(entry, Priced):
            self.tariffs[entry.site] = entry.tariff
            self.priced |= not entry.tariff.plain
        elif isinstance(entry, Reserved):
            self.priced |= not entry.tariff.plain
            self._open(entry)
        elif isinstance(entry, Recounted):
            self._recount(entry)
        elif isinstance(entry, Past):
            self._carry(entry)
        else:
            self._settle(entry)

    def balance(self, budget: Budget, now: float) -> Balance:
        if budget.bag is not None:
            return Balance(budget, self.used_by_bag.get(budget.bag, 0), self.reserved_by_bag(budget.bag))
        site = budget.site or ""
        used = self._used_by_site.get(site, 0)
        if budget.calendar:
            label = budget.calendar.label(max(now, self.latest))
            used = self._by_period(site, budget.calendar).get(label, 0)
        return Balance(budget, used, self._reserved_by_site.get(site, 0))

    def used_at(self, site: str) -> int:
        return self._used_by_site.get(site, 0)

    def reserved_at(self, site: str) -> int:
        return self._reserved_by_site.get(site, 0)

    def reserved_by_bag(self, bag: int) -> int:
        return self._reserved_by_bag.get(bag, 0)

    @property
    def places(self) -> set[str]:
        """The sites at which anything was reserved."""
        return set(self._reserved_by_site)

    def of_site(self, site: str) -> list[Budget]:
        return [budget for budget in self.budgets.values() if budget.site == site]

    def of_bag(self, bag: int) -> Budget | None:
        return self.budgets.get((bag, None, None))

    def _by_period(self, site: str, calendar: Calendar) -> dict[str, int]:
        """What was used in each period; counted once, then kept up to date."""
        used = self._used_in.get((site, calendar))
        if used is None:
            used = self._used_in[site, calendar] = defaultdict(int)
            for billed, amount in self._bills[site].items():
                used[calendar.label(billed)] += amount
        return used

    def _open(self, reserved: Reserved) -> None:
        """A later reservation of a pilot takes the place of the one before."""
        if reserved.pilot in self.open:
            self._close(reserved.pilot)
        self.open[reserved.pilot] = reserved
        self._reserve(reserved, 1)

    def forget_open(self, pilot: int) -> None:
        """Plan as if a pilot held no reservation."""
        if pilot in self.open:
            self._close(pilot)

    def _close(self, pilot: int) -> Reserved:
        reserved = self.open.pop(pilot)
        self._reserve(reserved, -1)
        return reserved

    def _reserve(self, reserved: Reserved, sign: int) -> None:
        self._reserved_by_site[reserved.site] += sign * reserved.amount
        for part in reserved.parts:
            _add(self._reserved_by_bag, part.bag, sign * part.amount)

    def _settle(self, settled: Settled) -> None:
        reserved = self._close(settled.pilot)
        site, amount = reserved.site, settled.amount
        self.closed[settled.pilot] = SettledPilot.of(reserved, settled)
        self._used_by_site[site] += amount
        for part in settled.parts:
            self.used_by_bag[part.bag] += part.amount
        self._waste(site, settled.parts, 1)
        self._bill(site, settled.billed, amount)

    def _bill(self, site: str, billed: float, amount: int) -> None:
        step = billing_step(billed)
        bills = self._bills[site]
        bills[step] = bills.get(step, 0) + amount
        for (of, calendar), used in self._used_in.items():
            if of == site:
                used[calendar.label(step)] += amount

    def _carry(self, past: Past) -> None:
        """Take in what pilots of forgotten bags have cost."""
        self._reserved_by_site[past.site] += 0  # one of the places
        self._used_by_site[past.site] += past.used
        self.wasted_by_site[past.site] += past.wasted
        self._bill(past.site, past.billed, past.used)

    def keep_recent(self) -> None:
        """Leave the oldest settled pilots to the journal."""
        for pilot in list(self.closed)[:-RECENT]:
            del self.closed[pilot]

    def drop(self, pilot: int, parts: Iterable[Part]) -> None:
        """Forget a settled pilot whose bags are forgotten; what its site was charged stays."""
        self.closed.pop(pilot, None)
        for part in parts:
            _add(self.used_by_bag, part.bag, -part.amount)
            _add(self.wasted_by_bag, part.bag, -part.wasted)

    def _recount(self, recounted: Recounted) -> None:
        before = self.closed[recounted.pilot]
        self._waste(before.site, before.parts, -1)
        self._waste(before.site, recounted.parts, 1)
        self.closed[recounted.pilot] = before.recounted(recounted)

    def _waste(self, site: str, parts: Iterable[Part], sign: int) -> None:
        for part in parts:
            _add(self.wasted_by_bag, part.bag, sign * part.wasted)
            self.wasted_by_site[site] += sign * part.wasted


def _add(sums: dict[int, int], bag: int, amount: int) -> None:
    """Sums of 0 are not kept, so that bags without a balance take no memory."""
    total = sums.get(bag, 0) + amount
    if total:
        sums[bag] = total
    else:
        sums.pop(bag, None)
