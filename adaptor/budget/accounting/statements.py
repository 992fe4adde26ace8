"""Statements of a ledger: states of budgets, and the cost of bags, sites and calendar periods."""

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
    JointLimit,
    Part,
    Priced,
    Recounted,
    Reserved,
    Settled,
)
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import BudgetError


class Balance(msgspec.Struct, frozen=True):
    """State of a budget, in millionths of a credit."""

    budget: Budget
    used: int
    reserved: int
    """Amount that pilots queued and running may cost, in full."""
    joint: int | None = None
    """Amount that the joint limit of a bag leaves; None: it has none."""

    @property
    def left(self) -> int:
        """Amount that is left; below 0 only if a pilot ran beyond its tr and its site's grace, or was altered
        by hand."""
        return self.own if self.joint is None else min(self.own, self.joint)

    @property
    def own(self) -> int:
        """Millionths of a credit that are left, like `left` but without the joint limit."""
        return self.budget.amount - self.used - self.reserved


class JointStanding(msgspec.Struct, frozen=True):
    """State of a joint limit, in millionths of a credit."""

    limit: JointLimit
    used: int = 0
    reserved: int = 0
    held: int = 0
    """Processors of pilots queued and running."""

    @property
    def left(self) -> int:
        """Amount that is left; below 0 as in `Balance`, or if the limit was lowered."""
        return self.limit.amount - self.used - self.reserved

    @property
    def processors_left(self) -> int:
        return max(0, self.limit.processors - self.held)


class Standing(msgspec.Struct, frozen=True):
    """Cost of a bag or a site, in millionths of a credit."""

    used: int
    wasted: int
    """Part of the used amount: idle slots, killed attempts, losing replicas."""
    reserved: int


BILLING_STEP = 900
"""Seconds. Bills of a site in one quarter of an hour are one sum: every time zone that the IANA data base has
since 1973 differs from UTC by whole quarters, so such a step lies in one period of any calendar."""


class SettledPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that was charged, by all of its entries."""

    site: str
    area: int
    """Processor-seconds that were charged."""
    parts: tuple[Part, ...]
    """Parts of its bags, as recounted last."""
    at: float
    """Epoch seconds at which its last entry was written."""

    @classmethod
    def of(cls, reserved: Reserved, settled: Settled) -> SettledPilot:
        area = reserved.area(settled.seconds)
        return cls(site=reserved.site, area=area, parts=settled.parts, at=settled.at)

    def recounted(self, by: Recounted) -> SettledPilot:
        return msgspec.structs.replace(self, parts=by.parts, at=max(self.at, by.at))


def settled_pilot(entries: Iterable[Entry]) -> SettledPilot | None:
    """The pilot by its entries in their order; None: it has none, or was not charged yet."""
    reserved: Reserved | None = None
    found: SettledPilot | None = None
    for entry in entries:
        if isinstance(entry, Reserved):
            reserved = entry
        elif isinstance(entry, Settled) and reserved is not None:
            found = SettledPilot.of(reserved, entry)
        elif isinstance(entry, Recounted) and found is not None:
            found = found.recounted(entry)
    return found


def billing_step(billed: float) -> float:
    """The beginning of the step in which something was billed, epoch seconds."""
    return billed // BILLING_STEP * BILLING_STEP


RECENT = 200  # settled pilots that are kept one by one, for results that come late


class Statements:
    """The sums of a ledger. Every entry is applied here once; nothing is checked. Times are epoch seconds.

    A calendar period bears what is billed in it and, while it lasts, all open reservations. The latest
    instant seen counts as now where the clock has been set back, so no period comes again.
    """

    def __init__(self) -> None:
        self._budgets: dict[BudgetKey, Budget] = {}
        self._tariffs: dict[str, Tariff] = {}
        self.open_pilots: dict[int, Reserved] = {}
        """Reservations by pilot that has not been settled, with the parts that hold now."""
        self._closed: dict[int, SettledPilot] = {}
        """Pilots that were settled, the newest last; older ones are only in the journal (`RECENT`)."""
        self._used_by_bag: dict[int, int] = defaultdict(int)
        self._wasted_by_bag: dict[int, int] = defaultdict(int)
        self._priced = False  # whether any entry has a price other than the default
        self._latest = -math.inf
        self._wasted_by_site: dict[str, int] = defaultdict(int)
        self._used_by_site: dict[str, int] = defaultdict(int)
        self._reserved_by_bag: dict[int, int] = defaultdict(int)
        self._reserved_by_site: dict[str, int] = defaultdict(int)
        self._bills: dict[str, dict[float, int]] = defaultdict(dict)  # by site, then by billing step
        self._used_in: dict[tuple[str, Calendar], dict[str, int]] = {}
        self._joint: dict[str, JointStanding] = {}  # by key
        self._key_of: dict[int, str] = {}  # by bag that a joint limit holds for

    @property
    def in_use(self) -> bool:
        """Whether a price or a budget is set; without one, no credits are shown."""
        return self._priced or bool(self._budgets)

    def settled(self, pilot: int) -> bool:
        """Whether a pilot was charged."""
        return pilot in self._closed

    def balances(self, now: float) -> list[Balance]:
        """State of every budget."""
        return [self._balance(budget, now) for budget in self._budgets.values()]

    def budget_of(self, bag: int) -> Balance | None:
        """State of the budget of a bag; None: it has none."""
        budget, joint = self._budgets.get((bag, None, None)), self.joint_of(bag)
        if budget is None:
            return None
        balance = self._balance(budget, -math.inf)
        return balance if joint is None else msgspec.structs.replace(balance, joint=joint.left)

    def joint_of(self, bag: int) -> JointStanding | None:
        """State of the joint limit of a bag; None: it has none."""
        key = self._key_of.get(bag)
        return None if key is None else self._joint[key]

    def joint(self, key: str) -> JointStanding:
        """State of the limit of a key. Raises KeyError: it has none."""
        return self._joint[key]

    def budgets_at(self, site: str, now: float) -> list[Balance]:
        """State of the budgets of a site."""
        return [self._balance(budget, now) for budget in self._budgets.values() if budget.site == site]

    def at_site(self, site: str) -> Standing:
        """Cost of a site since the journal began."""
        sums = (self._used_by_site, self._wasted_by_site, self._reserved_by_site)
        return Standing(*(by_site.get(site, 0) for by_site in sums))

    def of_bag(self, bag: int) -> Standing:
        """Cost of a bag so far."""
        sums = (self._used_by_bag, self._wasted_by_bag, self._reserved_by_bag)
        return Standing(*(by_bag.get(bag, 0) for by_bag in sums))

    @property
    def bags(self) -> set[int]:
        """All that were ever charged, or that anything is reserved for, or that have a budget."""
        budgeted = {budget.bag for budget in self._budgets.values() if budget.bag is not None}
        return budgeted | self.bags_with_open_pilots | set(self._used_by_bag)

    @property
    def bags_with_open_pilots(self) -> set[int]:
        """Bags that pay a part of a pilot that has not been settled."""
        return {part.bag for reserved in self.open_pilots.values() for part in reserved.parts}

    def open_pilots_of(self, bag: int) -> list[Reserved]:
        """The pilots that have not been settled and that a bag pays a part of."""
        return [pilot for pilot in self.open_pilots.values() if any(part.bag == bag for part in pilot.parts)]

    @property
    def sites(self) -> set[str]:
        """All that were ever paid or reserved at, or that have a price."""
        return set(self._tariffs) | set(self._reserved_by_site)

    @property
    def priced(self) -> set[str]:
        """Sites that have a price; a site that the configuration no longer has has none."""
        return set(self._tariffs)

    def tariff(self, site: str) -> Tariff:
        """Price of reservations at a site now. Raises BudgetError: the site has no prices."""
        tariff = self._tariffs.get(site)
        if tariff is None:
            raise BudgetError(f"site {site} has no prices; give it `price` in the configuration")
        return tariff

    def _apply(self, entry: Entry) -> None:
        self._latest = max(self._latest, entry.at)
        if isinstance(entry, Budgeted):
            self._budgets[entry.budget.key] = entry.budget
        elif isinstance(entry, Priced):
            self._tariffs[entry.site] = entry.tariff
            self._priced |= not entry.tariff.plain
        elif isinstance(entry, Reserved):
            self._priced |= not entry.tariff.plain
            # A later reservation of a pilot takes the place of the one before.
            if entry.pilot in self.open_pilots:
                self._close(entry.pilot)
            self.open_pilots[entry.pilot] = entry
            self._reserve(entry, 1)
        elif isinstance(entry, Recounted):
            before = self._closed[entry.pilot]
            self._waste(before.site, before.parts, -1)
            self._waste(before.site, entry.parts, 1)
            self._closed[entry.pilot] = before.recounted(entry)
        else:
            self._settle(entry)

    def _balance(self, budget: Budget, now: float) -> Balance:
        if budget.bag is not None:
            return Balance(
                budget, self._used_by_bag.get(budget.bag, 0), self._reserved_by_bag.get(budget.bag, 0)
            )
        site = budget.site or ""
        used = self._used_by_site.get(site, 0)
        if budget.calendar:
            label = budget.calendar.label(max(now, self._latest))
            used = self._by_period(site, budget.calendar).get(label, 0)
        return Balance(budget, used, self._reserved_by_site.get(site, 0))

    def _by_period(self, site: str, calendar: Calendar) -> dict[str, int]:
        """Amount used in each period, by its label; counted once, then kept up to date."""
        used = self._used_in.get((site, calendar))
        if used is None:
            used = self._used_in[site, calendar] = defaultdict(int)
            for billed, amount in self._bills[site].items():
                used[calendar.label(billed)] += amount
        return used

    def _close(self, pilot: int) -> Reserved:
        reserved = self.open_pilots.pop(pilot)
        self._reserve(reserved, -1)
        return reserved

    def _reserve(self, reserved: Reserved, sign: int) -> None:
        self._reserved_by_site[reserved.site] += sign * reserved.amount
        for part in reserved.parts:
            add_to(self._reserved_by_bag, part.bag, sign * part.amount)
            self._add_joint(part.bag, reserved=sign * part.amount)
        for bag in {self._key_of.get(part.bag, ""): part.bag for part in reserved.parts}.values():
            self._add_joint(bag, held=sign * reserved.held)

    def _add_joint(self, bag: int, *, used: int = 0, reserved: int = 0, held: int = 0) -> None:
        """Count for the joint limit of a bag, if it has one."""
        if (at := self.joint_of(bag)) is not None:
            self._joint[at.limit.key] = JointStanding(
                at.limit, at.used + used, at.reserved + reserved, at.held + held
            )

    def _settle(self, settled: Settled) -> None:
        reserved = self._close(settled.pilot)
        site, amount = reserved.site, settled.amount
        self._closed[settled.pilot] = SettledPilot.of(reserved, settled)
        self._used_by_site[site] += amount
        for part in settled.parts:
            self._used_by_bag[part.bag] += part.amount
            self._add_joint(part.bag, used=part.amount)
        self._waste(site, settled.parts, 1)
        step, bills = billing_step(settled.billed), self._bills[site]
        bills[step] = bills.get(step, 0) + amount
        for (of, calendar), used in self._used_in.items():
            if of == site:
                used[calendar.label(step)] += amount

    def _keep_recent(self) -> None:
        """Leave the oldest settled pilots to the journal."""
        for pilot in list(self._closed)[:-RECENT]:
            del self._closed[pilot]

    def _waste(self, site: str, parts: Iterable[Part], sign: int) -> None:
        for part in parts:
            add_to(self._wasted_by_bag, part.bag, sign * part.wasted)
            self._wasted_by_site[site] += sign * part.wasted


def add_to(sums: dict[int, int], bag: int, amount: int) -> None:
    """Sums of 0 are not kept, so that bags without a balance take no memory."""
    total = sums.get(bag, 0) + amount
    if total:
        sums[bag] = total
    else:
        sums.pop(bag, None)
