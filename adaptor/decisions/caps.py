"""Budget caps: cuts the requests that a heuristic wants to what the budgets leave."""

from __future__ import annotations

import msgspec

from adaptor.budget.accounting.allowance import Afforded, Allowance, afford
from adaptor.budget.accounting.credits import format_credits, rounded_up
from adaptor.budget.accounting.entries import bag_name, bag_pauses, larger_budget
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.provisioning.within_budget import useful_seconds
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.situation import PREPAID, Demand, SubmitRequest
from adaptor.decisions.aims import course_of
from adaptor.decisions.memory import Memory
from adaptor.decisions.requests import (
    billed,
    known_shortest,
    paid_in_parts,
    per_processor,
    purse_of,
    shape_of,
    smallest,
)
from adaptor.decisions.shares import part_of_money
from adaptor.decisions.snapshot import Snapshot
from adaptor.model import CraftedRequest, Request
from adaptor.units import counted, format_duration


class TooDear(msgspec.Struct, frozen=True):
    """The budgets do not hold even the smallest request."""

    reason: str


def left_for(snapshot: Snapshot, ledger: Ledger, demand: Demand) -> Allowance:
    """The amount that the budgets leave for formal requests for these tasks at the site of a step."""
    site = snapshot.here
    per = per_processor(site.rules, site.queue, demand.task)
    return ledger.allowance(site.name, "explicit", demand.payers, snapshot.now, per)


def within_budgets(
    snapshot: Snapshot,
    memory: Memory,
    ledger: Ledger,
    wanted: SubmitRequest,
    share: float = 1.0,
    before: int | None = None,
    *,
    last: bool = False,
) -> SubmitRequest | TooDear:
    """The request as it may be submitted.

    Args:
        ledger: with all that is set aside so far, in this step too.
        share: its share among the requests of this step.
        before: millionths of a credit that were left before the first of them; None: what is left.
        last: whether the requests of this step are all that the bag's waiting tasks can use, so that what is
            left need not last for others.
    """
    site, demand = snapshot.here, wanted.demand
    shape = shape_of(site, demand, wanted.crafted.partition)
    request = wanted.crafted.request
    least = smallest(shape, demand)
    per = per_processor(site.rules, site.queue, demand.task)
    whole = left_for(snapshot, ledger, demand)
    in_parts = wanted.crafted.paid is None and _pays_in_parts(snapshot, ledger, demand)
    allowance, useful = whole, None
    if whole.amount is not None and demand.funds.endless:  # else the funds have divided what is left
        at_first = whole if before is None else msgspec.structs.replace(whole, amount=before)
        part = _site_part(snapshot, memory, demand, at_first, least)
        allowance = _in_step(part, share, whole.amount, least)
        if not last:
            useful = useful_tr(snapshot, ledger, demand, allowance, request, shape.slots(request.p) / share)
    asked, resolution = billed(site.rules, request), site.rules.time_resolution
    if in_parts:
        wanted = _begun(wanted, asked, allowance, least, useful)
    paid = wanted.crafted.paid
    if paid is not None:
        asked, useful, resolution = asked.lasting(paid), None, 1
        allowance = msgspec.structs.replace(allowance, tariff=allowance.tariff.of_parts)
    found = afford(allowance, asked, least, useful, resolution)
    if found.request is None:
        return TooDear(too_dear(ledger, allowance, found, demand))
    submit = wanted if found.request == asked else _cut(wanted, found, shape)
    crafted = _told_paid(submit.crafted, allowance.budget)
    return msgspec.structs.replace(submit, crafted=crafted, per=per)


def _pays_in_parts(snapshot: Snapshot, ledger: Ledger, demand: Demand) -> bool:
    bag = snapshot.payer(demand.bag)
    return bag is not None and ledger.budget_of(bag.id) is not None and paid_in_parts(bag.spec)


def _begun(
    wanted: SubmitRequest, asked: Request, allowance: Allowance, least: Request, useful: int | None
) -> SubmitRequest:
    """The request with the seconds that are paid for at first, unless what is left pays for all of it.

    Args:
        asked: the request as the scheduler takes it.
        useful: seconds for which it is of use; None: for as long as it lasts.
    """
    if allowance.amount is None:
        return wanted
    tariff, part = allowance.tariff, int(PREPAID * allowance.amount)
    first = tariff.of_parts.affordable_seconds(allowance.kind, part, asked.p)
    if first >= asked.tr + tariff.grace:
        return wanted
    paid = min(asked.tr, max(least.tr, first if useful is None else min(first, useful)))
    return msgspec.structs.replace(wanted, crafted=msgspec.structs.replace(wanted.crafted, paid=paid))


def _site_part(
    snapshot: Snapshot, memory: Memory, demand: Demand, allowance: Allowance, least: Request
) -> Allowance:
    """The site's part of what is left. The smallest request is within every part, so that what is left of a
    budget is never left over."""
    bag = snapshot.payer(demand.bag)
    if bag is None:
        return allowance
    assert allowance.amount is not None
    some = allowance.tariff.reservation(allowance.kind, least.p, least.tr)
    mine = max(some, int(allowance.amount * part_of_money(snapshot, memory, bag)))
    if mine >= allowance.amount:
        return allowance
    part = f"the part of {snapshot.site} in {allowance.budget}"
    return msgspec.structs.replace(allowance, amount=mine, budget=part)


def _in_step(allowance: Allowance, share: float, left: int, least: Request) -> Allowance:
    """Amount that one of several requests of a step may cost; the smallest request is within every part.

    Args:
        allowance: for all of them.
        left: millionths of a credit that are left by those before it.
    """
    assert allowance.amount is not None
    some = allowance.tariff.reservation(allowance.kind, least.p, least.tr)
    mine = max(int(share * allowance.amount), min(some, allowance.amount))
    return msgspec.structs.replace(allowance, amount=min(mine, left))


def useful_tr(
    snapshot: Snapshot, ledger: Ledger, demand: Demand, allowance: Allowance, wanted: Request, hosts: float
) -> int | None:
    """Seconds for which a number of hosts is of use, where the request would take half of what is left.

    Credits reserved for nothing buy no other host. None: no bound.
    """
    bag = snapshot.payer(demand.bag)
    purse = None if bag is None else purse_of(ledger, snapshot.here, bag, allowance.kind)
    if bag is None or purse is None or allowance.amount is None:
        return None
    if 2 * allowance.tariff.reservation(allowance.kind, wanted.p, wanted.tr) <= allowance.amount:
        return None
    course = course_of(snapshot, bag, known_shortest(snapshot.here, bag, demand))
    return allowance.tariff.charged_seconds(useful_seconds(course, purse, hosts, demand.runtime))


def _told_paid(crafted: CraftedRequest, budget: str) -> CraftedRequest:
    """The request with a reason that says for how long a budget pays at first, if not for all of its
    walltime."""
    if crafted.paid is None or crafted.paid >= crafted.request.tr:
        return crafted
    first = f"{format_duration(crafted.paid)} of it are paid for at first ({budget}), more while it runs"
    return msgspec.structs.replace(crafted, reason=f"{crafted.reason}; {first}")


def _cut(wanted: SubmitRequest, found: Afforded, shape: RequestShape) -> SubmitRequest:
    assert found.request is not None
    request, paid = found.request, wanted.crafted.paid
    if paid is not None:
        whole = wanted.crafted.request
        request, paid = msgspec.structs.replace(whole, p=request.p), request.tr
    tasks = shape.holds(request.p, request.tr)
    crafted = msgspec.structs.replace(
        wanted.crafted,
        request=request,
        paid=paid,
        tasks=min(wanted.crafted.tasks, tasks),
        reason=f"{wanted.crafted.reason}; {found.reason}",
    )
    return msgspec.structs.replace(wanted, crafted=crafted)


def too_dear(ledger: Ledger, allowance: Allowance, found: Afforded, demand: Demand) -> str:
    """Why there is no request, what the remaining tasks would cost, and what the user can do."""
    known, waiting = demand.times, demand.waiting
    long = min(waiting, max(1, known.cut)) if known.finished else waiting  # the others may be as most were
    longest = demand.runtime if known.known else demand.shortest
    work = demand.task.processors * (long * longest + (waiting - long) * known.mean)
    rest = allowance.tariff.charge(allowance.kind, 1, work) + found.needed
    reason = f"{found.reason}; {counted(demand.waiting, 'waiting task')} may need {format_credits(rest)}"
    bags = sorted(demand.payers)
    waits = f"{bag_name(*bags)} {'wait' if len(bags) > 1 else 'waits'} until"
    if found.crowded:
        return f"{waits} other pilots end: {found.reason}"
    if any(ledger.of_bag(bag).reserved for bag in bags):
        return f"{waits} pilots end and give credits back: {reason}"
    paused = f"{bag_pauses(*bags)}: {reason}"
    if demand.bag is None or allowance.budget != bag_name(demand.bag):
        return paused
    used = ledger.of_bag(demand.bag).used
    return f"{paused}: {larger_budget(demand.bag, rounded_up(used + rest))}"
