"""Bags that spend under a budget while everything goes wrong; every instant is recounted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.allowance import afford
from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.entries import Budget, Budgeted, Entry, Reserved, Settled
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import PriceKind, Request

SITE = "site"
_DAY = 86_400.0
_CALENDARS = (Calendar("day", "Europe/Lisbon"), Calendar("week"), Calendar("month", "America/Sao_Paulo"))


class Checked(msgspec.Struct, frozen=True):
    """Findings on a simulated bag."""

    violations: int
    """Instants at which used + reserved was above a budget, and rebuilt ledgers that differed."""
    pilots: int
    refused: int
    """Requests for which nothing was left."""


class Spending:
    """Two bags of one site: pilots come and go in random order, late, early, or never; prices change, the
    clock is set back, and the ledger is lost and rebuilt from its entries."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._ledger = Ledger()
        self._entries: list[Entry] = []
        self._running: dict[int, float | None] = {}
        self._now = 1.7e9 + self._draw.uniform(0, 365 * _DAY)
        self._pilots = self._refused = self._violations = 0
        self._tasks = {bag: self._draw.randint(5, 200) for bag in (1, 2)}
        self._grace = self._draw.choice((0, 30, 120))
        self._set_up()

    def run(self, steps: int = 60) -> Checked:
        acts = (self._ask, self._ask, self._ask, self._end, self._end, self._crash, self._price)
        for _ in range(steps):
            self._draw.choice(acts)()
            self._now += self._draw.choice((1.0, 600.0, 7200.0, _DAY, -3600.0))
            self._check()
            if not any(self._tasks.values()) and not self._running:
                break
        while self._running:
            self._end()
            self._check()
        return Checked(self._violations, self._pilots, self._refused)

    def _set_up(self) -> None:
        self._price()
        for bag in (1, 2):
            budget = Budget(amount=self._draw.randint(1, 400) * MILLION, bag=bag)
            self._entries.append(self._ledger.set_budget(budget, self._now))
        for calendar in (None, self._draw.choice(_CALENDARS)):
            budget = Budget(amount=self._draw.randint(1, 600) * MILLION, site=SITE, calendar=calendar)
            self._entries.append(self._ledger.set_budget(budget, self._now))

    def _price(self) -> None:
        explicit = self._draw.choice((0.01, 0.3, 1.0, 7.77))
        tariff = Tariff(
            price_explicit=explicit,
            price_donated=explicit * self._draw.uniform(0.1, 1.0),
            charging_unit=self._draw.choice((1, 60, 900, 3600)),
            grace=self._grace,
        )
        self._entries.append(self._ledger.set_price(SITE, tariff, self._now))

    def _ask(self) -> None:
        bag = self._draw.choice([bag for bag, tasks in self._tasks.items() if tasks] or [1])
        shares = {bag: 1.0} if self._draw.random() < 0.6 else {1: self._draw.random(), 2: self._draw.random()}
        kind: PriceKind = self._draw.choice(("explicit", "donated"))
        allowance = self._ledger.allowance(SITE, kind, shares, self._now)
        wanted = Request(self._draw.randint(1, 64), self._draw.randint(60, 20_000))
        request = afford(allowance, wanted, Request(1, 60)).request
        if request is None:
            self._refused += 1
            return
        self._pilots += 1
        self._entries.append(self._ledger.reserve(self._pilots, SITE, request, kind, shares, self._now))
        self._running[self._pilots] = self._draw.choice((None, self._now, self._now + 300))

    def _end(self) -> None:
        if not self._running:
            return
        pilot = self._draw.choice(list(self._running))
        started = self._running.pop(pilot)
        reserved = self._ledger.open_pilots[pilot]
        late = self._draw.randint(0, self._grace)
        lasted = self._draw.choice((0.0, self._draw.uniform(0, reserved.tr), reserved.tr + late, -50.0))
        ended = (self._now if started is None else started) + lasted
        area = max(0.0, lasted) * reserved.p
        uses = {}
        for bag in self._tasks:
            share = self._draw.random() / 2
            uses[bag] = Use(area * share * self._draw.random(), area * share * self._draw.random() / 2)
            self._tasks[bag] = max(0, self._tasks[bag] - int(area * share / 600))
        self._entries.append(self._ledger.settle(pilot, started, ended, uses, max(self._now, ended)))

    def _crash(self) -> None:
        """The ledger is lost; the journal has all entries."""
        written = msgspec.json.encode(self._entries)
        rebuilt = Ledger(msgspec.json.decode(written, type=list[Entry]))
        self._violations += rebuilt.balances(self._now) != self._ledger.balances(self._now)
        self._ledger = rebuilt

    def _check(self) -> None:
        self._violations += above_budget(self._entries, self._now)
        self._violations += any(balance.left < 0 for balance in self._ledger.balances(self._now))


def above_budget(entries: Sequence[Entry], now: float) -> int:
    """Number of exceeded budgets, recounted from the entries alone, without the ledger's own sums."""
    latest = max([now, *(entry.at for entry in entries)])
    site_of = {entry.pilot: entry.site for entry in entries if isinstance(entry, Reserved)}
    reserved: dict[int, dict[int, int]] = {}
    bags: Counter[int] = Counter()
    bills: list[tuple[str, float, int]] = []
    for entry in entries:
        if isinstance(entry, Reserved):
            reserved[entry.pilot] = {part.bag: part.amount for part in entry.parts}
        elif isinstance(entry, Settled):
            del reserved[entry.pilot]
            bags.update({part.bag: part.amount for part in entry.parts})
            bills.append((site_of[entry.pilot], entry.billed, entry.amount))
    for parts in reserved.values():
        bags.update(parts)
    budgets = {entry.budget.key: entry.budget for entry in entries if isinstance(entry, Budgeted)}
    held: Counter[str] = Counter()
    for pilot, parts in reserved.items():
        held[site_of[pilot]] += sum(parts.values())
    return sum(_exceeded(budget, bags, bills, held, latest) for budget in budgets.values())


def _exceeded(
    budget: Budget, bags: Counter[int], bills: list[tuple[str, float, int]], held: Counter[str], now: float
) -> bool:
    if budget.bag is not None:
        return bags[budget.bag] > budget.amount
    own = [(billed, amount) for site, billed, amount in bills if site == budget.site]
    if budget.calendar is None:
        return sum(amount for _, amount in own) + held[budget.site or ""] > budget.amount
    spent: Counter[str] = Counter({budget.calendar.label(now): held[budget.site or ""]})
    for billed, amount in own:
        spent[budget.calendar.label(billed)] += amount
    return max(spent.values()) > budget.amount
