"""Cutting the requests that a heuristic wants to what the budgets leave. It decides nothing else."""

from __future__ import annotations

import time

import msgspec

from adaptor.budget.accounting.allowance import Afforded, Allowance, afford
from adaptor.budget.accounting.credits import format_credits, rounded_up
from adaptor.budget.accounting.ledger import Shares
from adaptor.crafting.shape import Shape
from adaptor.crafting.situation import Demand, Issue
from adaptor.crafting.words import counted
from adaptor.daemon.credits.treasury import EXPLICIT
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.viewing import rules_of
from adaptor.model import Request
from adaptor.scheduling.bag import Bag
from adaptor.units import round_down, round_up


class Affordable(msgspec.Struct, frozen=True):
    """A request within the budgets, and who pays for it."""

    issue: Issue
    shares: Shares


class TooDear(msgspec.Struct, frozen=True):
    """Not even the smallest request is within the budgets."""

    reason: str


def within_budgets(site: SiteState, wanted: Issue) -> Affordable | TooDear | None:
    """The request as it may be made; None: the tasks for which it was wanted have gone meanwhile."""
    shares = site.core.broker.sharers(site.name, wanted.demand)
    if not shares:
        return None
    shape = shape_of(site, wanted.demand)
    request = wanted.crafted.request
    least = smallest(site, shape, wanted.demand)
    whole = site.core.treasury.allowance(site.name, EXPLICIT, shares, time.time())
    allowance = _site_part(site, wanted.demand, whole, least)
    if wanted.demand.most is not None:
        # A bag in a hurry, or one that counts its slots, would rather have all of them for a shorter time.
        request = _shorter(allowance, request, least, shape)
    found = afford(allowance, billed(site, request), least)
    if found.request is None:
        return TooDear(_too_dear(site, allowance, found, wanted.demand))
    if found.request == billed(site, wanted.crafted.request):
        return Affordable(wanted, shares)
    return Affordable(_cut(wanted, found, shape), shares)


def billed(site: SiteState, request: Request) -> Request:
    """The request as the scheduler takes it, with tr in its resolution."""
    return Request(request.p, round_up(request.tr, site.backend.time_resolution))


def shape_of(site: SiteState, demand: Demand) -> Shape:
    return Shape(
        rules=rules_of(site),
        site_processors=site.seen.processors if site.seen else 0,
        processors_per_task=demand.processors_per_task,
        runtime=demand.runtime,
    )


def smallest(site: SiteState, shape: Shape, demand: Demand) -> Request:
    """The least that is of any use: the processors of one task, or of a node, for the shortest task."""
    needed = round_up(demand.shortest + shape.rules.pad, site.backend.time_resolution)
    return Request(shape.unit, min(needed, billed(site, Request(1, shape.rules.limits.max_tr)).tr))


def _site_part(site: SiteState, demand: Demand, allowance: Allowance, least: Request) -> Allowance:
    """No more than the site's part of a quote's cost: the first site to ask leaves the others theirs.

    The smallest request is within every part, so that what is left of a budget is never left over.
    """
    bag = site.core.broker.books.bags.get(demand.bag) if demand.bag is not None else None
    ledger = site.core.treasury.ledger
    if bag is None or allowance.amount is None:
        return allowance
    slots = site.core.chosen.of(bag)
    if site.name not in slots:
        return _allotted_part(site, bag, allowance, least)
    balance = ledger.budget_of(bag.id)
    if balance is None:
        return allowance
    worth = {
        name: count * ledger.tariff(name).price(EXPLICIT)
        for name, count in slots.items()
        if name in site.core.terms  # those that the configuration has no longer get nothing
    }
    part = balance.budget.amount - balance.used
    held = sum(
        each.amount
        for each in ledger.open_pilots.values()
        if each.site == site.name and any(share.bag == bag.id for share in each.parts)
    )
    mine = part * worth[site.name] // max(1, sum(worth.values())) - held
    some = 0 if held else allowance.tariff.reservation(allowance.kind, least.p, least.tr)
    return _at_most(allowance, max(some, mine), site.name)


def _at_most(allowance: Allowance, amount: int, site: str) -> Allowance:
    """The allowance, or the site's part of it where that is less."""
    if allowance.amount is None or amount >= allowance.amount:
        return allowance
    part = f"the part of {site} in {allowance.budget}"
    return msgspec.structs.replace(allowance, amount=amount, budget=part)


def _allotted_part(site: SiteState, bag: Bag, allowance: Allowance, least: Request) -> Allowance:
    """As much of what is left as the site's part of the waiting tasks is worth of all of them."""
    parting = site.peers.allotments.of(bag.id) if site.peers is not None else None
    total = sum(each.cost for each in parting.portions.values()) if parting is not None else 0.0
    if parting is None or allowance.amount is None or not total:
        return allowance
    mine = int(allowance.amount * parting.worth(site.name) / total)
    some = allowance.tariff.reservation(allowance.kind, least.p, least.tr)
    return _at_most(allowance, max(some, mine), site.name)


def _shorter(allowance: Allowance, wanted: Request, least: Request, shape: Shape) -> Request:
    """The request with so many rounds of tasks as can be paid; itself where not even one can."""
    if allowance.amount is None:
        return wanted
    tr = allowance.tariff.affordable_seconds(allowance.kind, allowance.amount, wanted.p)
    rounds = shape.rounds(min(tr, wanted.tr))
    cut = shape.tr_for(rounds, wanted.tr)
    return Request(wanted.p, cut) if rounds and cut <= tr and cut >= least.tr else wanted


def _cut(wanted: Issue, found: Afforded, shape: Shape) -> Issue:
    assert found.request is not None
    request = Request(found.request.p, round_down(found.request.tr, shape.rules.time_resolution))
    tasks = shape.slots(request.p) * max(1, shape.rounds(request.tr))
    crafted = msgspec.structs.replace(
        wanted.crafted,
        request=request,
        tasks=min(wanted.crafted.tasks, tasks),
        reason=f"{wanted.crafted.reason}; {found.reason}",
    )
    return msgspec.structs.replace(wanted, crafted=crafted)


def _too_dear(site: SiteState, allowance: Allowance, found: Afforded, demand: Demand) -> str:
    """Why nothing is requested, what the rest would cost, and the way out."""
    work = demand.waiting * demand.processors_per_task * demand.runtime
    rest = allowance.tariff.charge(allowance.kind, 1, work) + found.needed
    reason = f"{found.reason}; {counted(demand.waiting, 'waiting task')} may need {format_credits(rest)}"
    if demand.bag is None:
        return reason
    known = site.core.treasury.ledger.of_bag(demand.bag)
    if known.reserved:
        return f"bag {demand.bag} waits until its pilots end and give credits back: {reason}"
    if allowance.budget != f"bag {demand.bag}":
        return f"bag {demand.bag} is paused: {reason}"
    return (
        f"bag {demand.bag} is paused: {reason}: adaptor budget {demand.bag} --set "
        f"{rounded_up(known.used + rest)}"
    )
