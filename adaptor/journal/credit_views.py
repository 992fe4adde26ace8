"""The ledger as users see it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from adaptor.api import CreditLine, CreditsView, SitePrice
from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.statements import Balance


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
    known, balance = ledger.of_bag(bag), ledger.budget_of(bag)
    return CreditLine(
        bag=bag,
        budget=in_credits(balance.budget.amount) if balance else None,
        used=in_credits(known.used),
        wasted=in_credits(known.wasted),
        reserved=in_credits(known.reserved),
        left=in_credits(balance.left) if balance else None,
    )


def _site_lines(ledger: Ledger, site: str, now: float) -> Iterator[CreditLine]:
    """One line since the journal began, then one for the present period of each budget that has periods."""
    known = ledger.at_site(site)
    balances = ledger.budgets_at(site, now)
    whole = next((each for each in balances if each.budget.calendar is None), None)
    yield CreditLine(
        site=site,
        budget=in_credits(whole.budget.amount) if whole else None,
        used=in_credits(known.used),
        wasted=in_credits(known.wasted),
        reserved=in_credits(known.reserved),
        left=in_credits(whole.left) if whole else None,
    )
    for balance in balances:
        if balance.budget.calendar is not None:
            yield _period_line(site, balance, balance.budget.calendar.label(now))


def _period_line(site: str, balance: Balance, period: str) -> CreditLine:
    return CreditLine(
        site=site,
        period=period,
        budget=in_credits(balance.budget.amount),
        used=in_credits(balance.used),
        reserved=in_credits(balance.reserved),
        left=in_credits(balance.left),
    )


def _price(ledger: Ledger, site: str) -> SitePrice:
    tariff = ledger.tariff(site)
    return SitePrice(
        site=site,
        explicit=tariff.price_explicit,
        donated=tariff.price_donated,
        charging_unit=tariff.charging_unit,
        gpu=tariff.price_gpu,
    )
