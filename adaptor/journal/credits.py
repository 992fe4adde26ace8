"""The ledger as users see it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

import msgspec

from adaptor.api import CreditLine, CreditsView, SitePrice
from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.entries import Budgeted, Entry, Recounted, Reserved, Settled
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.statements import Balance, Standing, settled_pilot

_pack = msgspec.msgpack.Encoder().encode
_unpack: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


def write_entry(db: sqlite3.Connection, entry: Entry) -> None:
    """Write one entry; the caller has begun a transaction."""
    pilot = entry.pilot if isinstance(entry, Reserved | Settled | Recounted) else None
    bag = entry.budget.bag if isinstance(entry, Budgeted) else None
    db.execute("INSERT INTO credit (pilot, bag, entry) VALUES (?, ?, ?)", (pilot, bag, _pack(entry)))


def entries(db: sqlite3.Connection) -> list[Entry]:
    """All of them, in the order in which they were written."""
    return [_unpack.decode(packed) for (packed,) in db.execute("SELECT entry FROM credit ORDER BY id")]


def entries_of_pilot(db: sqlite3.Connection, pilot: int) -> list[Entry]:
    """Entries of a pilot in their order."""
    rows = db.execute("SELECT entry FROM credit WHERE pilot = ? ORDER BY id", (pilot,))
    return [_unpack.decode(packed) for (packed,) in rows]


def gpus_of_pilot(db: sqlite3.Connection, pilot: int) -> float:
    """The GPUs for which a pilot is, or was, charged."""
    held = [entry.gpus for entry in entries_of_pilot(db, pilot) if isinstance(entry, Reserved)]
    return held[-1] if held else 0.0


def forgotten_payers(db: sqlite3.Connection, pilot: int) -> set[int]:
    """The bags that paid for a settled pilot and are forgotten."""
    known = settled_pilot(entries_of_pilot(db, pilot))
    bags = {part.bag for part in known.parts} if known is not None else set()
    return {bag for bag in bags if not db.execute("SELECT 1 FROM bag WHERE id = ?", (bag,)).fetchone()}


def forget_budget(db: sqlite3.Connection, bag: int) -> None:
    """Remove the budget of a bag; the caller has begun a transaction."""
    db.execute("DELETE FROM credit WHERE bag = ?", (bag,))


def budgets_of_bags(written: Iterable[Entry]) -> dict[int, int]:
    """Present budget of each bag, in millionths of a credit."""
    return {
        entry.budget.bag: entry.budget.amount
        for entry in written
        if isinstance(entry, Budgeted) and entry.budget.bag is not None
    }


def credits_view(ledger: Ledger, bags: Collection[int], now: float, *, priced: bool) -> CreditsView:
    """All sites and these bags; `priced`: with prices, which only a running daemon's ledger has."""
    sites = sorted(ledger.sites)
    return CreditsView(
        sites=[line for site in sites for line in _site_lines(ledger, site, now)],
        bags=[bag_line(ledger, bag) for bag in sorted(ledger.bags & set(bags))],
        prices=[_price(ledger, site) for site in sites if site in ledger.priced] if priced else [],
        in_use=ledger.in_use,
    )


def bag_line(ledger: Ledger, bag: int) -> CreditLine:
    return _line(ledger.of_bag(bag), ledger.budget_of(bag), bag=bag)


def _site_lines(ledger: Ledger, site: str, now: float) -> Iterator[CreditLine]:
    """One line since the journal began, then one for the present period of each budget that has periods."""
    balances = ledger.budgets_at(site, now)
    whole = next((each for each in balances if each.budget.calendar is None), None)
    yield _line(ledger.at_site(site), whole, site=site)
    for balance in balances:
        if balance.budget.calendar is not None:
            yield CreditLine(
                site=site,
                period=balance.budget.calendar.label(now),
                budget=in_credits(balance.budget.amount),
                used=in_credits(balance.used),
                reserved=in_credits(balance.reserved),
                left=in_credits(balance.left),
            )


def _line(
    known: Standing, balance: Balance | None, *, bag: int | None = None, site: str | None = None
) -> CreditLine:
    """Credits charged since the journal began, besides the budget without periods if there is one."""
    return CreditLine(
        bag=bag,
        site=site,
        budget=in_credits(balance.budget.amount) if balance else None,
        used=in_credits(known.used),
        wasted=in_credits(known.wasted),
        reserved=in_credits(known.reserved),
        left=in_credits(balance.left) if balance else None,
    )


def _price(ledger: Ledger, site: str) -> SitePrice:
    tariff = ledger.tariff(site)
    return SitePrice(
        site=site,
        explicit=tariff.price_explicit,
        donated=tariff.price_donated,
        charging_unit=tariff.charging_unit,
        gpu=tariff.price_gpu,
        grace=tariff.grace,
    )
