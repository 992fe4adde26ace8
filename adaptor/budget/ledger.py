"""The ledger of credits: nothing is submitted that could cost more than what is left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from adaptor.budget.accounts import Accounts, Balance
from adaptor.budget.allowance import Allowance
from adaptor.budget.charging import Allocation, Tariff, held_seconds
from adaptor.budget.credits import format_credits
from adaptor.budget.entries import (
    Budget,
    Budgeted,
    Entry,
    Part,
    Priced,
    Recounted,
    Reserved,
    Reshared,
    Settled,
)
from adaptor.budget.errors import BudgetError, OverBudgetError
from adaptor.budget.splitting import proportions, split, split_within
from adaptor.model import Request
from adaptor.units import format_duration

_AnyEntry = TypeVar("_AnyEntry", bound=Entry)

Shares = Mapping[int, float]
"""By bag: its weight in the cost of a pilot that serves several. At least one bag."""


class Use(msgspec.Struct, frozen=True):
    """What a bag's attempts held of a pilot, in processor-seconds."""

    useful: float = 0.0
    """Attempts whose result counts."""
    wasted: float = 0.0
    """Killed attempts and losing replicas."""


class Standing(msgspec.Struct, frozen=True):
    """What something has cost, in millionths of a credit."""

    used: int
    wasted: int
    """Of what is used: idle slots, killed attempts, losing replicas."""
    reserved: int


class Ledger:
    """Used + reserved ≤ budget at every instant, for bags, sites and periods.

    Every change returns the entry that says it. Write it into the journal before acting on it: a ledger
    made from the entries is equal to this one, so a crash in between loses at most a request that was
    never submitted. Times are epoch seconds, amounts millionths of a credit.

    A pilot that serves several bags is reserved in agreed shares. When it ends, its cost goes to the bags
    by the processor-seconds that they held in it, and its idle time in the same proportion; where nothing
    ran, by the shares. What a bag's budget cannot bear is borne by the pilot's other bags, whose
    reservations are large enough, since no pilot costs more than was reserved for it.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._accounts = Accounts()
        for entry in entries:
            self._accounts.apply(entry)

    def set_budget(self, budget: Budget, now: float) -> Budgeted:
        """Set or change a budget.

        Raises:
            BudgetError: it is below what is used and reserved already.
        """
        balance = self._accounts.balance(budget, now)
        if balance.left < 0:
            raise BudgetError(
                f"the budget of {budget.name} cannot be {format_credits(budget.amount)}: "
                f"{format_credits(balance.used + balance.reserved)} credits are used or reserved already"
            )
        return self._written(Budgeted(budget, now))

    def impose(self, budget: Budget, now: float) -> Budgeted:
        """As `set_budget`, however much is used already: where that is more, nothing more is given."""
        return self._written(Budgeted(budget, now))

    def set_price(self, site: str, tariff: Tariff, now: float) -> Priced:
        """What is reserved from now on costs this; open pilots keep the prices they were bought at."""
        return self._written(Priced(site, tariff, now))

    def allowance(self, site: str, kind: Allocation, shares: Shares, now: float) -> Allowance:
        """What a pilot that these bags share may cost at most.

        Raises:
            BudgetError: the site has no prices.
        """
        rooms = [*self._site_rooms(site, now), *self._bag_rooms(shares, now)]
        amount, name = min(rooms, default=(None, ""))
        return Allowance(tariff=self._tariff(site), kind=kind, amount=amount, budget=name)

    def reserve(
        self, pilot: int, site: str, request: Request, kind: Allocation, shares: Shares, now: float
    ) -> Reserved:
        """Set the full p × tr of a pilot aside, before it is submitted.

        Raises:
            OverBudgetError: a budget does not hold it; nothing is changed.
            BudgetError: the site has no prices, or the pilot has a reservation.
        """
        if pilot in self._accounts.open:
            raise BudgetError(f"pilot {pilot} is reserved already")
        tariff = self._tariff(site)
        amount = tariff.reservation(kind, request.p, request.tr)
        parts = _parts(amount, shares)
        for room, name in self._site_rooms(site, now):
            _check(amount, room, name, request)
        self._check_bags(parts, {}, request, now)
        return self._written(
            Reserved(
                pilot=pilot,
                site=site,
                p=request.p,
                tr=request.tr,
                kind=kind,
                tariff=tariff,
                parts=parts,
                at=now,
            )
        )

    def reshare(self, pilot: int, shares: Shares, now: float) -> Reshared:
        """Let other bags bear the reservation of a pilot from now on, for instance one that came later.

        Raises:
            OverBudgetError: a bag's budget does not hold its part; nothing is changed.
            KeyError: the pilot has no reservation.
        """
        reserved = self._accounts.open[pilot]
        parts = _parts(reserved.amount, shares)
        held = {part.bag: part.amount for part in reserved.parts}
        self._check_bags(parts, held, Request(reserved.p, reserved.tr), now)
        return self._written(Reshared(pilot, parts, now))

    def settle(
        self, pilot: int, started: float | None, ended: float, uses: Mapping[int, Use], now: float
    ) -> Settled:
        """Charge the real time of a pilot and give the rest of its reservation back.

        `started` is None for a pilot that was refused or withdrawn. `uses` says by bag what its attempts
        held; a bag without a share may be among them.

        Raises:
            KeyError: the pilot has no reservation.
        """
        reserved = self._accounts.open[pilot]
        seconds = held_seconds(started, ended)
        amount = reserved.tariff.charge(reserved.kind, reserved.p, seconds)
        area = reserved.p * reserved.tariff.charged_seconds(seconds)
        # No period bears what was not reserved in it: not before the reservation, not in the future.
        billed = max(reserved.at, min(ended, max(now, self._accounts.latest)))
        return self._written(
            Settled(
                pilot=pilot,
                seconds=seconds,
                parts=self._charged(reserved, amount, area, uses, now),
                billed=billed,
                at=now,
            )
        )

    def recount(self, pilot: int, uses: Mapping[int, Use], now: float) -> Recounted | None:
        """What a settled pilot did for its bags, by what is known of it now; None: nothing else than before.

        Only what was wasted changes: who paid how much was settled for good. A bag that had no part in the
        charge gets none.

        Raises:
            KeyError: the pilot was not settled.
        """
        closed = self._accounts.closed[pilot]
        amount = sum(part.amount for part in closed.parts)
        parts = tuple(
            msgspec.structs.replace(
                part, wasted=_wasted(part.amount, amount, closed.area, uses.get(part.bag, Use()))
            )
            for part in closed.parts
        )
        return None if parts == closed.parts else self._written(Recounted(pilot, parts, now))

    def settled(self, pilot: int) -> bool:
        """Whether a pilot was charged."""
        return pilot in self._accounts.closed

    def balances(self, now: float) -> list[Balance]:
        """Where every budget stands."""
        return [self._accounts.balance(budget, now) for budget in self._accounts.budgets.values()]

    def spent(self, bag: int) -> Part:
        """What a bag has been charged, and how much of that was wasted."""
        accounts = self._accounts
        return Part(bag, accounts.used_by_bag.get(bag, 0), accounts.wasted_by_bag.get(bag, 0))

    def reserved(self, bag: int) -> int:
        """What is set aside for a bag's pilots, queued and running."""
        return self._accounts.reserved_by_bag(bag)

    def at_site(self, site: str) -> Standing:
        """What a site has cost since the journal began."""
        accounts = self._accounts
        wasted = accounts.wasted_by_site.get(site, 0)
        return Standing(accounts.used_at(site), wasted, accounts.reserved_at(site))

    def of_bag(self, bag: int) -> Standing:
        """What a bag has cost so far."""
        spent = self.spent(bag)
        return Standing(spent.amount, spent.wasted, self.reserved(bag))

    @property
    def bags(self) -> set[int]:
        """All that were ever charged, or that anything is reserved for, or that have a budget."""
        budgeted = {budget.bag for budget in self._accounts.budgets.values() if budget.bag is not None}
        reserved = {part.bag for each in self._accounts.open.values() for part in each.parts}
        return budgeted | reserved | set(self._accounts.used_by_bag)

    @property
    def sites(self) -> set[str]:
        """All that were ever paid or reserved at, or that have a price."""
        return set(self._accounts.tariffs) | self._accounts.places

    def budget_of(self, bag: int) -> Balance | None:
        """Where the budget of a bag stands; None: it has none."""
        budget = self._accounts.of_bag(bag)
        return None if budget is None else self._accounts.balance(budget, -math.inf)

    def budgets_at(self, site: str, now: float) -> list[Balance]:
        """Where the budgets of a site stand."""
        return [self._accounts.balance(budget, now) for budget in self._accounts.of_site(site)]

    def tariff(self, site: str) -> Tariff:
        """What is reserved at a site now costs this. Raises BudgetError: it has no prices."""
        return self._tariff(site)

    @property
    def open_pilots(self) -> Mapping[int, Reserved]:
        """The pilots that have not been settled."""
        return self._accounts.open

    def _written(self, entry: _AnyEntry) -> _AnyEntry:
        self._accounts.apply(entry)
        return entry

    def _tariff(self, site: str) -> Tariff:
        tariff = self._accounts.tariffs.get(site)
        if tariff is None:
            raise BudgetError(f"site {site} has no prices; give it `price` in the configuration")
        return tariff

    def _site_rooms(self, site: str, now: float) -> list[tuple[int, str]]:
        budgets = self._accounts.of_site(site)
        return [(self._accounts.balance(budget, now).left, budget.name) for budget in budgets]

    def _bag_rooms(self, shares: Shares, now: float) -> list[tuple[int, str]]:
        """How much a shared pilot may cost as a whole for each bag to bear its part, rounding included."""
        rooms = []
        for bag, share in zip(shares, proportions(list(shares.values())), strict=True):
            left = self._bag_room(bag, now)
            if left is not None and share:
                rooms.append((left if share == 1 else max(0, int((left - 1) / share)), f"bag {bag}"))
        return rooms

    def _bag_room(self, bag: int, now: float) -> int | None:
        budget = self._accounts.of_bag(bag)
        return None if budget is None else self._accounts.balance(budget, now).left

    def _check_bags(
        self, parts: Iterable[Part], held: Mapping[int, int], request: Request, now: float
    ) -> None:
        for part in parts:
            room = self._bag_room(part.bag, now)
            if room is not None:
                _check(part.amount, room + held.get(part.bag, 0), f"bag {part.bag}", request)

    def _charged(
        self, reserved: Reserved, amount: int, area: int, uses: Mapping[int, Use], now: float
    ) -> tuple[Part, ...]:
        own = {part.bag: part.amount for part in reserved.parts}
        bags = list(dict.fromkeys([*own, *(bag for bag, use in uses.items() if use.useful + use.wasted > 0)]))
        used = [uses.get(bag, Use()) for bag in bags]
        held = [use.useful + use.wasted for use in used]
        weights = held if any(held) else [float(own.get(bag, 0)) for bag in bags]
        rooms = []
        for bag in bags:
            left = self._bag_room(bag, now)
            rooms.append(None if left is None else max(0, left) + own.get(bag, 0))
        parts = split_within(amount, weights, rooms)
        return tuple(
            Part(bag, part, _wasted(part, amount, area, use))
            for bag, part, use in zip(bags, parts, used, strict=True)
        )


def _wasted(part: int, amount: int, area: int, use: Use) -> int:
    """Of a bag's part of a charge: all that did not pay for a useful attempt."""
    return part - min(part, round(amount * use.useful / area)) if area else 0


def _parts(amount: int, shares: Shares) -> tuple[Part, ...]:
    if not shares or not all(math.isfinite(weight) and weight >= 0 for weight in shares.values()):
        raise BudgetError("a pilot is shared by at least one bag, and each share is a number of 0 or more")
    return tuple(
        Part(bag, part) for bag, part in zip(shares, split(amount, list(shares.values())), strict=True)
    )


def _check(needed: int, left: int, name: str, request: Request) -> None:
    if needed > left:
        raise OverBudgetError(
            f"{request.p} × {format_duration(request.tr)} may cost {format_credits(needed)} credits, "
            f"and {name} has {format_credits(max(0, left))} left",
            needed=needed,
            left=left,
        )
