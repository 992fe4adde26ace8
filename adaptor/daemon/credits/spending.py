"""Budgets as the command line asks for them and is told of them."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import format_credits, millionths
from adaptor.budget.errors import BudgetError
from adaptor.crafting.situation import Demand
from adaptor.daemon.core import Core
from adaptor.daemon.credits.affording import billed, shape_of, smallest
from adaptor.daemon.credits.foresight import look_ahead
from adaptor.daemon.credits.treasury import DONATED, EXPLICIT
from adaptor.daemon.site_state import SiteState
from adaptor.errors import UsageError
from adaptor.journal.credit_views import bag_line, credits_view
from adaptor.model import Request
from adaptor.units import format_duration
from adaptor.views import BagView, CreditsView, ForecastView


def budget_writer(
    core: Core, sites: Iterable[SiteState], spec: BagSpec, credits: float | None
) -> Callable[[sqlite3.Connection, int], None] | None:
    """What writes a new bag's budget down together with the bag; None: it has none.

    Raises:
        UsageError: it holds no request.
    """
    if credits is None:
        return None
    allowed = [
        site for site in sites if spec.allows(site.name) and (not spec.slots or site.name in spec.slots)
    ]
    amount = millionths(credits, "a budget") + _beyond_work(core, allowed, spec)
    _check_holds_a_request(core, allowed, spec, amount)
    return lambda db, bag: core.treasury.give(db, bag, amount)


def _beyond_work(core: Core, sites: list[SiteState], spec: BagSpec) -> int:
    """What requests for the slots of a quote reserve beyond the work that it counts: pad and overrun.

    Most of it is given back when they end.
    """
    return sum(
        core.treasury.ledger.tariff(site.name).reservation(
            EXPLICIT, spec.slots.get(site.name, 0) * spec.cpus, math.ceil(site.pad)
        )
        for site in sites
    )


def _check_holds_a_request(core: Core, sites: list[SiteState], spec: BagSpec, amount: int) -> None:
    needed, site, request = min(_first_request(core, site, spec) for site in sites)
    if amount < needed:
        raise UsageError(
            f"a budget of {format_credits(amount)} credits holds no request: the smallest, {request.p} × "
            f"{format_duration(request.tr)} at {site}, may cost {format_credits(needed)} (a task is taken to "
            "need initial_tr before any has finished, the end of a pilot may be late, and begun charging "
            "units count whole)"
        )


def _first_request(core: Core, site: SiteState, spec: BagSpec) -> tuple[int, str, Request]:
    """The least that the first request of a bag costs at a site."""
    terms = core.terms[site.name]
    runtime = min(spec.runtimes.get(site.name, terms.initial_tr), terms.longest)
    demand = Demand(processors_per_task=spec.cpus, runtime=runtime, shortest=runtime)
    request = billed(site, smallest(site, shape_of(site, demand), demand))
    kind = DONATED if spec.allocation == "transparent" else EXPLICIT
    return (
        core.treasury.ledger.tariff(site.name).reservation(kind, request.p, request.tr),
        site.name,
        request,
    )


def change_budget(core: Core, sites: Iterable[SiteState], bag: int, credits: float) -> CreditsView:
    """Raises UsageError: there is no such bag, or that much is used and reserved already."""
    core.journal.bag_spec(bag)
    try:
        core.treasury.set_budget(bag, millionths(credits, "a budget"))
    except BudgetError as error:
        raise UsageError(str(error)) from error
    core.broker.keep_apart(bag)
    for site in sites:
        site.paused.pop(bag, None)
    return CreditsView(sites=[], bags=[bag_line(core.treasury.ledger, bag)], prices=[])


def live_credits(core: Core, told: CreditsView) -> CreditsView:
    """What the journal tells, with the prices and the budgets of the configuration."""
    bags = [line.bag for line in told.bags if line.bag is not None]
    return credits_view(core.treasury.ledger, bags, time.time(), priced=True)


def forecast_of(sites: Mapping[str, SiteState], bag: BagView) -> ForecastView | None:
    """Of a running bag with pilots of its own; None where too little is known yet."""
    allowed = _allowed(sites, bag)
    if bag.state != "running" or not allowed:
        return None
    books = allowed[0].core.broker.books
    known = books.bags.get(bag.id)
    if known is None or bag.id not in books.alone:
        return None
    now = time.time()
    ahead = allowed[0].core.outlooks.of(bag.id, now, lambda: look_ahead(allowed[0], known, now))
    if ahead is None:
        return None
    return ForecastView(
        cost=ahead.cost.value,
        cost_low=ahead.cost.low,
        cost_high=ahead.cost.high,
        end=ahead.end.value if ahead.end else None,
        end_low=ahead.end.low if ahead.end else None,
        end_high=ahead.end.high if ahead.end else None,
        deadline=known.spec.deadline,
    )


def check_deadline(deadline: float | None, now: float) -> None:
    """Raises UsageError: the deadline is in the past."""
    if deadline is not None and not deadline > now:
        raise UsageError(f"the deadline is {format_duration(now - deadline)} in the past")


def why_paused(sites: Mapping[str, SiteState], bag: BagView) -> str:
    """Why nothing is bought for a bag at any site; empty: something is, or it has no need."""
    if bag.state != "running" or not bag.waiting:
        return ""
    allowed = _allowed(sites, bag)
    allowed = [site for site in allowed if not _left_out(site, bag.id)] or allowed
    reasons = [site.paused.get(bag.id, "") for site in allowed]
    if not all(reasons) or any(pilot.bag == bag.id for site in allowed for pilot in site.pilots.values()):
        return ""
    return reasons[0] if reasons else ""


def _left_out(site: SiteState, bag: int) -> bool:
    """Whether the site is to have nothing of what waits, by cost and time."""
    parting = site.peers.allotments.of(bag) if site.peers is not None else None
    return parting is not None and not parting.tasks(site.name)


def _allowed(sites: Mapping[str, SiteState], bag: BagView) -> list[SiteState]:
    return [site for site in sites.values() if not bag.sites or site.name in bag.sites]
