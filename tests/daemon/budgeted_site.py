"""A site played by the test, with bags that have budgets, and what its ledger says."""

from __future__ import annotations

import asyncio
import time

from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.ledger import Ledger
from adaptor.daemon.client.credits import change_budget
from adaptor.daemon.step import step
from adaptor.journal.credits import entries
from tests.daemon.fake_site import FakeSite


def submit_budgeted(site: FakeSite, tasks: int, credits: float) -> int:
    """The number of the new bag."""
    site.submit_bag(tasks)
    bag = max(site.state.core.broker.state.bags)
    set_budget(site, bag, credits)
    return bag


def set_budget(site: FakeSite, bag: int, credits: float) -> None:
    change_budget(site.state.core, bag, credits)


def steps(site: FakeSite, count: int = 1) -> None:
    for _ in range(count):
        asyncio.run(step(site.state))


def told_of(ledger: Ledger) -> object:
    """All that a ledger can say."""
    bags = {bag: (ledger.of_bag(bag), ledger.budget_of(bag)) for bag in sorted(ledger.bags)}
    sites = {site: ledger.at_site(site) for site in sorted(ledger.sites)}
    return bags, sites, dict(ledger.open_pilots)


def in_every_past(site: FakeSite) -> None:
    """At no entry of the journal is more used and reserved than a bag's budget."""
    written = site.journal.read(entries)
    for until in range(len(written) + 1):
        for balance in Ledger(written[:until]).balances(time.time()):
            assert balance.left >= 0, f"after entry {until}: {balance}"


def credits_of(site: FakeSite, bag: int) -> tuple[float, float]:
    """Used and reserved."""
    known = site.state.core.treasury.ledger.of_bag(bag)
    return known.used / MILLION, known.reserved / MILLION
