"""The ledger of the running daemon: what the journal says of credits, at the prices of the configuration."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping

import msgspec

from adaptor.budget.accounting.credits import millionths
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.config.schema import SiteConfig
from adaptor.daemon.clock import Clock
from adaptor.decisions.pilots import Pilot
from adaptor.journal.change_rows import note_user_change
from adaptor.journal.credits import entries, entries_of_pilot, forgotten_payers, write_entry
from adaptor.journal.grant_rows import Grants
from adaptor.journal.journal import Journal
from adaptor.journal.pilot_rows import ended_pilots, uses_of, write_off
from adaptor.model import Request
from adaptor.scheduling.changes import AttemptEnd, Changes
from backends.registry import backend_type


class Costs(msgspec.Struct, frozen=True):
    """Price and budget of one site."""

    tariff: Tariff
    budget: Budget | None = None


DEFAULT = Costs(Tariff(price_explicit=1.0, price_donated=1.0))  # a credit is a processor-hour


def costs_of(configs: Mapping[str, SiteConfig]) -> dict[str, Costs]:
    return {name: Costs(_tariff(config), _budget(name, config)) for name, config in configs.items()}


def _tariff(config: SiteConfig) -> Tariff:
    price, overrun = config.price, config.overrun
    return Tariff(
        price_explicit=price.explicit,
        price_donated=price.explicit if price.donated is None else price.donated,
        price_gpu=price.gpu or 0.0,
        charging_unit=int(config.charging_unit),
        grace=math.ceil(backend_type(config.backend).overrun(config) if overrun is None else overrun),
    )


def _budget(name: str, config: SiteConfig) -> Budget | None:
    given = config.budget
    if given is None:
        return None
    calendar = Calendar(given.period, given.zone) if given.period else None
    return Budget(amount=millionths(given.credits, "credits"), site=name, calendar=calendar)


class Treasury:
    """Whatever it changes stands in the journal. After a JournalError it has to be made again.

    Prices and the budgets of sites are the configuration's, so they are not written down; pilots keep
    the prices at which they were reserved.
    """

    def __init__(
        self, journal: Journal, sites: Iterable[str], costs: Mapping[str, Costs], clock: Clock, grants: Grants
    ) -> None:
        """Raises JournalError: the entries cannot be read."""
        self._journal, self._clock = journal, clock
        now = clock()
        self.ledger = Ledger(journal.read(entries), grants.limits, grants.key_of)
        for site in sites:
            of_site = costs.get(site, DEFAULT)
            self.ledger.set_price(site, of_site.tariff, now)
            if of_site.budget is not None:
                self.ledger.impose(of_site.budget, now)

    def hold_for(self, pilot: int, request: Request) -> None:
        """Set aside what a pilot would cost with another request, if that is more than with its own.

        Raises:
            OverBudgetError: a budget does not hold it; nothing is changed.
            JournalError: it is not written.
        """
        with self._journal.transaction() as db:
            if entry := self.ledger.hold_for(pilot, request, self._clock()):
                write_entry(db, entry)

    def prolong(self, pilot: int, paid: int) -> None:
        """Set aside what a pilot costs until it has run for `paid` seconds.

        Raises:
            OverBudgetError: a budget does not hold it; nothing is changed.
            JournalError: it is not written.
        """
        with self._journal.transaction() as db:
            write_entry(db, self.ledger.prolong(pilot, paid, self._clock()))

    def hold(self, pilot: int, processors: int) -> None:
        """Charge a pilot for the processors that the scheduler says it has. Raises JournalError."""
        if pilot in self.ledger.open_pilots:
            with self._journal.transaction() as db:
                if entry := self.ledger.hold(pilot, processors, self._clock()):
                    write_entry(db, entry)

    def change(self, db: sqlite3.Connection, pilot: int, request: Request) -> None:
        """Set aside what a pilot costs that asks for this now, in a transaction of the journal."""
        write_entry(db, self.ledger.change(pilot, request, self._clock(), within=False))

    def give_back(self, db: sqlite3.Connection, pilot: Pilot, processors: int, at: float) -> None:
        """Charge processors that a running pilot gave back until then, in a transaction of the journal."""
        if pilot.id in self.ledger.open_pilots and pilot.started is not None:
            write_entry(db, self.ledger.give_back(pilot.id, processors, at - pilot.started, self._clock()))

    def settle(self, pilots: Iterable[int]) -> None:
        """Charge those of these pilots that have ended, and give the rest back. Raises JournalError.

        A pilot stays reserved until this is written, so one whose daemon is killed before that is settled
        by the next one.
        """
        unsettled = sorted(self.ledger.open_pilots.keys() & set(pilots))
        if not unsettled:
            return
        now = self._clock()
        with self._journal.transaction() as db:
            for pilot, end in ended_pilots(db, unsettled).items():
                uses = uses_of(db, pilot)
                write_entry(db, self.ledger.settle(pilot, end.started, end.ended, uses, now))

    def write_off(self, pilot: int, started: float | None, ended: float, end_reason: str) -> int:
        """End a pilot of which nothing more will be heard; the millionths of a credit that it is charged.

        Raises JournalError: nothing is written.
        """
        with self._journal.transaction() as db:
            write_off(db, pilot, started, ended, end_reason)
            if pilot not in self.ledger.open_pilots:
                return 0
            settled = self.ledger.settle(pilot, started, ended, uses_of(db, pilot), self._clock())
            write_entry(db, settled)
        return settled.amount

    def late_results(self, changes: Changes) -> Callable[[sqlite3.Connection], None] | None:
        """A function that corrects the charges of pilots whose attempts were reported after they were
        settled.

        To be called in the transaction that writes the changes; None: there is nothing to correct.
        """
        told = {
            end.pilot for end in changes.attempts if isinstance(end, AttemptEnd) and end.pilot is not None
        }
        settled = sorted(pilot for pilot in told if self._was_settled(pilot))
        if not settled:
            return None

        def recount(db: sqlite3.Connection) -> None:
            for pilot in settled:
                gone = forgotten_payers(db, pilot)
                entry = self.ledger.recount(pilot, uses_of(db, pilot), self._clock(), gone)
                if entry is not None:
                    write_entry(db, entry)

        return recount

    def _was_settled(self, pilot: int) -> bool:
        """Whether a pilot was charged; if so, the ledger knows it from now on."""
        if self.ledger.settled(pilot) or pilot in self.ledger.open_pilots:
            return self.ledger.settled(pilot)
        return self.ledger.recall(pilot, self._journal.read(entries_of_pilot, pilot))

    def give(self, db: sqlite3.Connection, bag: int, amount: int) -> None:
        """Set the budget of a bag, in millionths of a credit, in a transaction of the journal.

        Raises BudgetError: it is below what is used and reserved already.
        """
        write_entry(db, self.ledger.set_budget(Budget(amount=amount, bag=bag), self._clock()))

    def set_budget(self, bag: int, amount: int) -> None:
        """Set a budget like `give`, in a transaction of its own, as a change by the user. Raises JournalError
        too."""
        with self._journal.transaction() as db:
            self.give(db, bag, amount)
            note_user_change(db, bag, "budget changed", self._clock())
