"""The ledger of credits: nothing is submitted that could cost more than what is left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

import msgspec

from adaptor.budget.accounting.allowance import Allowance
from adaptor.budget.accounting.cost_shares import Use, charged, proportions, recounted, split
from adaptor.budget.accounting.credits import format_credits
from adaptor.budget.accounting.entries import (
    Budget,
    Budgeted,
    Entry,
    JointLimit,
    Part,
    Priced,
    Recounted,
    Reserved,
    Settled,
    bag_name,
)
from adaptor.budget.accounting.statements import RECENT, Balance, JointStanding, Statements, settled_pilot
from adaptor.budget.accounting.tariffs import Tariff, held_seconds
from adaptor.budget.errors import BudgetError, OverBudgetError, TooManyProcessorsError
from adaptor.model import PriceKind, Request
from adaptor.resources import AS_ASKED, PerProcessor
from adaptor.units import format_duration

_AnyEntry = TypeVar("_AnyEntry", bound=Entry)

Shares = Mapping[int, float]
"""Weight of each bag in the cost of a pilot that serves several. At least one bag."""


class Ledger(Statements):
    """Used + reserved ≤ budget at every instant, for bags, sites and periods, and for the bags of a key.

    A change by hand in the scheduler's queue is reserved as it is, whatever the budgets hold.

    Every change returns the entry that says it. Write it into the journal before acting on it: a ledger
    made from the entries is equal to this one, so a crash in between loses at most a request that was
    never submitted. Times are epoch seconds, amounts millionths of a credit.

    A pilot that serves several bags is reserved in agreed shares. When it ends, its cost goes to the bags
    by the processor-seconds that they held in it, and its idle time in the same proportion; where nothing
    ran, by the shares. What a bag's budget cannot pay, the pilot's other bags pay. Their reservations are
    large enough, because no pilot costs more than was reserved for it.
    """

    def __init__(
        self,
        entries: Iterable[Entry] = (),
        limits: Iterable[JointLimit] = (),
        keys: Mapping[int, str] | None = None,
    ) -> None:
        """`limits`: of keys; `keys`: by bag that one of them holds for, its key."""
        super().__init__()
        self._frozen: Ledger | None = None
        self._joint = {limit.key: JointStanding(limit) for limit in limits}
        self._key_of = dict(keys or {})
        for entry in entries:
            self._apply(entry)
        self._keep_recent()

    def fork(self) -> Ledger:
        """An independent copy to plan with: reservations may be tried out, nothing may be recounted."""
        copy = Ledger()
        copy._budgets, copy._tariffs = self._budgets.copy(), self._tariffs.copy()
        copy._joint, copy._key_of = self._joint.copy(), self._key_of.copy()
        copy.open_pilots = self.open_pilots.copy()
        for sums in ("_used_by_bag", "_used_by_site", "_reserved_by_bag", "_reserved_by_site"):
            getattr(copy, sums).update(getattr(self, sums))
        for budget in self._budgets.values():
            if budget.calendar and budget.site is not None:
                used = self._by_period(budget.site, budget.calendar)
                copy._used_in[budget.site, budget.calendar] = defaultdict(int, used)
        copy._latest, copy._priced = self._latest, self._priced
        return copy

    def frozen(self) -> Ledger:
        """A copy for reading: the same object until something changes here. Callers must not change it."""
        if self._frozen is None:
            self._frozen = self.fork()
        return self._frozen

    def without(self, pilot: int) -> Ledger:
        """A fork in which a pilot holds no reservation: what another request may cost in its place."""
        copy = self.fork()
        if pilot in copy.open_pilots:
            copy._close(pilot)
        return copy

    def set_budget(self, budget: Budget, now: float) -> Budgeted:
        """Set or change a budget.

        Raises:
            BudgetError: it is below what is used and reserved already.
        """
        balance = self._balance(budget, now)
        if balance.left < 0:
            raise BudgetError(
                f"the budget of {budget.name} cannot be {format_credits(budget.amount)}: "
                f"{format_credits(balance.used + balance.reserved)} credits are used or reserved already"
            )
        return self._written(Budgeted(budget, now))

    def impose(self, budget: Budget, now: float) -> Budgeted:
        """Set a budget like `set_budget`, but accept one that is already used up: then nothing more is
        given."""
        return self._written(Budgeted(budget, now))

    def limit_together(self, limit: JointLimit) -> None:
        """Set or change the limit of a key, however much its bags use already."""
        self._frozen = None
        known = self._joint.get(limit.key) or JointStanding(limit)
        self._joint[limit.key] = msgspec.structs.replace(known, limit=limit)

    def join(self, bag: int, key: str) -> None:
        """The limit of a key holds for a new bag, for which nothing is reserved yet."""
        assert key in self._joint
        self._frozen = None
        self._key_of[bag] = key

    def set_price(self, site: str, tariff: Tariff, now: float) -> Priced:
        """Set the price of later reservations at a site; open pilots keep the prices at which they were
        bought."""
        return self._written(Priced(site, tariff, now))

    def allowance(
        self, site: str, kind: PriceKind, shares: Shares, now: float, per: PerProcessor = AS_ASKED
    ) -> Allowance:
        """The most that a pilot that these bags share may cost.

        `per`: its resources with each processor.

        Raises:
            BudgetError: the site has no prices.
        """
        joint = [known for bag in shares if (known := self.joint_of(bag)) is not None]
        rooms = [
            *((balance.left, _with_reserved(balance)) for balance in self.budgets_at(site, now)),
            *self._bag_rooms(shares),
            *((known.left, known.limit.name) for known in joint),
        ]
        amount, name = min(rooms, default=(None, ""))
        return Allowance(
            tariff=self.tariff(site).of_pilots(per),
            kind=kind,
            amount=amount,
            budget=name,
            joint=min(joint, key=lambda known: known.processors_left, default=None),
        )

    def reserve(
        self,
        pilot: int,
        site: str,
        request: Request,
        kind: PriceKind,
        shares: Shares,
        now: float,
        per: PerProcessor = AS_ASKED,
        paid: int | None = None,
    ) -> Reserved:
        """Set the full p × tr of a pilot aside, before it is submitted, or what its first seconds cost.

        `per`: what it holds with each processor. `paid`: those seconds; None: all of it.

        Raises:
            OverBudgetError: a budget does not hold it; nothing is changed.
            BudgetError: the site has no prices, or the pilot has a reservation.
        """
        if pilot in self.open_pilots:
            raise BudgetError(f"pilot {pilot} is reserved already")
        wanted = Reserved(
            pilot=pilot,
            site=site,
            p=request.p,
            tr=request.tr,
            kind=kind,
            tariff=self.tariff(site).of_pilots(per),
            parts=(),
            # Where the clock was set back, the period that has given it: rooms are judged by the latest.
            at=max(now, self._latest),
        ).paid_until(paid)
        parts = _parts(wanted.most, shares)
        self._check_rooms(site, parts, request, now)
        return self._written(msgspec.structs.replace(wanted, parts=parts))

    def change(self, pilot: int, request: Request, now: float, *, within: bool = True) -> Reserved:
        """Set another p × tr aside for a pilot that has a reservation, at its prices and in its shares.

        `within`: whether the budgets must hold it; False: it asks for that already.

        Raises:
            KeyError: the pilot has no reservation.
            OverBudgetError: a budget does not hold it; nothing is changed.
        """
        return self._changed(self.open_pilots[pilot].asking(request.p, request.tr), now, within=within)

    def prolong(self, pilot: int, paid: int, now: float) -> Reserved:
        """Set aside what a pilot costs until it has run for `paid` seconds.

        Raises:
            KeyError: the pilot has no reservation.
            OverBudgetError: a budget does not hold it; nothing is changed.
        """
        return self._changed(self.open_pilots[pilot].paid_until(paid), now, within=True)

    def _changed(self, changed: Reserved, now: float, *, within: bool) -> Reserved:
        parts = _parts(changed.most, changed.shares)
        if within:
            request = Request(changed.p, changed.tr)
            self.without(changed.pilot)._check_rooms(changed.site, parts, request, now)
        return self._written(msgspec.structs.replace(changed, parts=parts, at=max(now, self._latest)))

    def hold_for(self, pilot: int, request: Request, now: float) -> Reserved | None:
        """Set aside what a pilot would cost with another request, if that is more than with its own; None: it
        is not.

        Raises:
            KeyError: the pilot has no reservation.
            OverBudgetError: a budget does not hold it; nothing is changed.
        """
        known = self.open_pilots[pilot]
        if request.p > known.p:
            self.check_held(pilot, request)
        if known.asking(request.p, request.tr).most <= known.amount:
            return None
        return self.change(pilot, request, now)

    def hold(self, pilot: int, processors: int, now: float) -> Reserved | None:
        """Charge a pilot that has started for the processors that the scheduler says it has, whatever the
        budgets hold: it has them. None: for no others than before.

        Raises:
            KeyError: the pilot has no reservation.
        """
        known = self.open_pilots[pilot]
        tariff = known.tariff.of_pilots(PerProcessor(known.gpus / processors))
        if (known.p, known.tariff) == (processors, tariff):
            return None
        changed = msgspec.structs.replace(known, p=processors, tariff=tariff, at=max(now, self._latest))
        return self._written(msgspec.structs.replace(changed, parts=_parts(changed.most, known.shares)))

    def check_held(self, pilot: int, request: Request) -> None:
        """Raises OverBudgetError: a pilot that asks for this holds more than the limit of a key leaves."""
        self.without(pilot)._check_joint(self.open_pilots[pilot].parts, request)

    def give_back(self, pilot: int, processors: int, seconds: float, now: float) -> Reserved:
        """Set nothing more aside for processors that a pilot gave back `seconds` after its start.

        They are charged until then, in whole units.

        Raises:
            KeyError: the pilot has no reservation.
        """
        known = self.open_pilots[pilot]
        gone = max(0, min(processors, known.p - known.freed))
        held = min(seconds, known.lasts)
        changed = msgspec.structs.replace(
            known,
            freed=known.freed + gone,
            freed_area=known.freed_area + gone * known.tariff.charged_seconds(held),
            at=max(now, self._latest),
        )
        return self._written(msgspec.structs.replace(changed, parts=_parts(changed.most, known.shares)))

    def settle(
        self, pilot: int, started: float | None, ended: float, uses: Mapping[int, Use], now: float
    ) -> Settled:
        """Charge the real time of a pilot and give the rest of its reservation back.

        `started` is None for a pilot that was refused or withdrawn. `uses` says by bag what its attempts
        held; a bag without a share may be among them.

        Raises:
            KeyError: the pilot has no reservation.
        """
        reserved = self.open_pilots[pilot]
        seconds = held_seconds(started, ended)
        # No period bears what was not reserved in it: not before the reservation, not in the future.
        billed = max(reserved.at, min(ended, max(now, self._latest)))
        return self._written(
            Settled(
                pilot=pilot,
                seconds=seconds,
                parts=charged(reserved, seconds, uses, self._bag_room),
                billed=billed,
                at=now,
            )
        )

    def recall(self, pilot: int, entries: Iterable[Entry]) -> bool:
        """Whether a pilot was charged, by its entries: the oldest are not kept in memory."""
        if pilot not in self._closed and (known := settled_pilot(entries)) is not None:
            self._closed[pilot] = known
        return pilot in self._closed

    def recount(
        self, pilot: int, uses: Mapping[int, Use], now: float, forgotten: Container[int] = ()
    ) -> Recounted | None:
        """Work of a settled pilot for its bags, by what is known of it now; None: as before.

        Only what was wasted changes: who paid how much was settled for good. A bag that had no part in the
        charge gets none. Nothing changes for `forgotten` bags, of whose attempts nothing is known any more.

        Raises:
            KeyError: the pilot was not settled, or not recalled.
        """
        closed = self._closed[pilot]
        parts = recounted(closed.parts, closed.area, uses, forgotten)
        return None if parts == closed.parts else self._written(Recounted(pilot, parts, now))

    def forget_budget(self, bag: int) -> None:
        """Forget the budget of a bag that is forgotten."""
        self._frozen = None
        self._budgets.pop((bag, None, None), None)

    def _written(self, entry: _AnyEntry) -> _AnyEntry:
        self._frozen = None
        self._apply(entry)
        if len(self._closed) > 2 * RECENT:
            self._keep_recent()
        return entry

    def _site_rooms(self, site: str, now: float) -> list[tuple[int, str]]:
        return [(balance.left, balance.budget.name) for balance in self.budgets_at(site, now)]

    def _bag_rooms(self, shares: Shares) -> list[tuple[int, str]]:
        """Most that a shared pilot may cost as a whole if each bag can bear its part, rounding included; with
        names."""
        rooms = []
        for bag, share in zip(shares, proportions(list(shares.values())), strict=True):
            balance = self.budget_of(bag)
            if balance is not None and share:
                room = balance.own if share == 1 else max(0, int((balance.own - 1) / share))
                rooms.append((room, bag_name(bag)))
        return rooms

    def _check_rooms(self, site: str, parts: Iterable[Part], request: Request, now: float) -> None:
        """Raises OverBudgetError: a budget of the site or of a bag, or the limit of a key, holds less."""
        for room, name in self._site_rooms(site, now):
            _check(sum(part.amount for part in parts), room, name, request)
        for part in parts:
            balance = self.budget_of(part.bag)
            if balance is not None:
                _check(part.amount, balance.own, bag_name(part.bag), request)
        self._check_joint(parts, request)

    def _check_joint(self, parts: Iterable[Part], request: Request) -> None:
        costs: dict[str, int] = defaultdict(int)
        for part in parts:
            if (key := self._key_of.get(part.bag)) is not None:
                costs[key] += part.amount
        for key, amount in costs.items():
            known = self._joint[key]
            _check(amount, known.left, known.limit.name, request)
            if request.p > known.processors_left:
                raise TooManyProcessorsError(
                    f"{request.p} processors: the bags of {known.limit.name} hold {known.held} of"
                    f" {known.limit.processors}"
                )

    def _bag_room(self, bag: int) -> int | None:
        balance = self.budget_of(bag)
        return None if balance is None else balance.left


def _parts(amount: int, shares: Shares) -> tuple[Part, ...]:
    if not shares or not all(math.isfinite(weight) and weight >= 0 for weight in shares.values()):
        raise BudgetError("a pilot is shared by at least one bag, and each share is a number of 0 or more")
    return tuple(
        Part(bag, part) for bag, part in zip(shares, split(amount, list(shares.values())), strict=True)
    )


def _with_reserved(balance: Balance) -> str:
    """Name of a budget, and what of it comes back if pilots end early."""
    held = f", {format_credits(balance.reserved)} reserved for pilots" if balance.reserved else ""
    return f"{balance.budget.name}{held}"


def _check(needed: int, left: int, name: str, request: Request) -> None:
    if needed > left:
        raise OverBudgetError(
            f"{request.p} × {format_duration(request.tr)} may cost {format_credits(needed)} credits, "
            f"and {name} has {format_credits(max(0, left))} left",
            needed=needed,
            left=left,
        )
