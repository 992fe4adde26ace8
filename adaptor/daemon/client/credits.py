"""Budgets and forecasts: the questions of the command line, and their answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping

from adaptor import api
from adaptor.api import BagView, ForecastView
from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import in_credits, millionths
from adaptor.budget.accounting.entries import Budget
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.core import Core
from adaptor.daemon.removed_sites import settle_site
from adaptor.daemon.site import Site
from adaptor.decisions.forecasting.told import OLD
from adaptor.decisions.memory import MadeForecast
from adaptor.decisions.new_bags import check_holds_a_request
from adaptor.errors import UsageError
from adaptor.model import Estimate
from adaptor.runtimes.known import EarlierTasks
from adaptor.units import format_duration


def budget_writer(
    core: Core,
    sites: Mapping[str, Site],
    spec: BagSpec,
    credits: float | None,
    earlier: Mapping[str, EarlierTasks],
) -> Callable[[sqlite3.Connection, int], None] | None:
    """A function that writes the budget of a new bag in the transaction of the bag; None: the bag has none.

    `earlier`: by site, the tasks of earlier bags of the same kinds.

    Raises UsageError: the budget is too small for any request.
    """
    if credits is None:
        return None
    rules = {name: site.memory.rules for name, site in sites.items() if spec.allows(name)}
    ledger = core.treasury.ledger
    amount = millionths(credits, "a budget")
    check_holds_a_request(spec, amount, rules, core.terms, ledger, earlier)
    return lambda db, bag: core.treasury.give(db, bag, amount)


@answers(api.SettleSite)
async def _settle(running: RunningDaemon, question: api.SettleSite) -> int:
    settled = await settle_site(running.core, question.site, question.ended)
    running.wake_sites()
    return settled


def check_budget(core: Core, bags: Iterable[int], credits: float) -> None:
    """Raises BudgetError: one of the bags has used and reserved more already."""
    tried = core.treasury.ledger.fork()
    for bag in bags:
        tried.set_budget(Budget(amount=millionths(credits, "a budget"), bag=bag), core.now())


def change_budget(core: Core, bag: int, credits: float) -> None:
    """Change the budget of a bag. Raises BudgetError: more is used and reserved already (`check_budget`)."""
    core.treasury.set_budget(bag, millionths(credits, "a budget"))
    core.broker.keep_apart(bag)
    core.decided = core.decided.without_pause(bag)


def forecast_view(core: Core, bag: BagView) -> ForecastView | None:
    """The forecast of a running bag, as last made in a step; None: there is none, or it is too old.

    The forecast has no end once the whole interval has passed without the bag's end.
    """
    known, made, now = core.broker.state.bags.get(bag.id), core.decided.forecasts.get(bag.id), core.now()
    if bag.state != "running" or known is None or made is None:
        return None
    cost, end = made.forecast.cost, made.forecast.end
    if end is not None and end.high < now:
        end = None
    if not 0 <= now - made.at < OLD or (cost is None and end is None):
        return None
    balance = core.treasury.ledger.budget_of(bag.id)
    most = None if balance is None else in_credits(balance.budget.amount)
    return ForecastView(
        cost=cost,
        budget=most,
        paid=None if most is None else _paid(made, bag, most),
        end=Estimate(*(max(now, figure) for figure in (end.low, end.value, end.high))) if end else None,
        blind=made.forecast.blind,
        deadline=known.spec.deadline,
        in_file_order=cost is not None and known.spec.order == "file",
    )


def _paid(made: MadeForecast, bag: BagView, budget: float) -> int | None:
    """Tasks for which a budget does, if each of those to come costs as much as the others; None: all.

    While the cost cannot be named, the least of it counts.
    """
    cost, charged = made.forecast.cost, made.forecast.charged
    needed = made.forecast.least if cost is None else cost.value
    if needed <= max(budget, charged):
        return None
    share = max(0.0, budget - charged) / (needed - charged)
    return max(bag.done, made.finished + int((bag.tasks - made.finished) * share))


def check_deadline(deadline: float | None, now: float, begin: float | None = None) -> None:
    """Raises UsageError: the deadline is in the past, or not after the begin."""
    if deadline is not None and not deadline > now:
        raise UsageError(f"the deadline is {format_duration(now - deadline)} in the past")
    if begin is not None and deadline is not None and not deadline > begin:
        raise UsageError(
            f"the bag begins {format_duration(begin - deadline)} after its deadline: write an earlier --begin"
            " or a later --deadline"
        )


def check_begin(begin: float | None, now: float) -> None:
    """Raises UsageError: it is in the past."""
    if begin is not None and not begin > now:
        raise UsageError(
            f"the begin is {format_duration(now - begin)} in the past: leave out --begin for a bag that"
            " starts now"
        )


def why_paused(core: Core, bag: BagView) -> str:
    """Why nothing is started or bought for a bag; empty: something is, or it has no need."""
    if bag.paused:
        return bag.paused
    if bag.state != "running" or not bag.waiting:
        return ""
    return core.why_paused(bag.id, bag.sites)
