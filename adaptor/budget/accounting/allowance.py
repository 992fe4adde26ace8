"""Largest request that a budget still holds."""

from __future__ import annotations

import msgspec

from adaptor.budget.accounting.credits import format_credits
from adaptor.budget.accounting.statements import JointStanding
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import PriceKind, Request
from adaptor.units import format_duration, round_down


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Amount that may be reserved now for a pilot of these bags at a site."""

    tariff: Tariff
    kind: PriceKind
    amount: int | None
    """Millionths of a credit; None: nothing limits it."""
    budget: str
    """The budget that leaves the least, in words."""
    joint: JointStanding | None = None
    """The joint limit that leaves the fewest processors; None: none holds for these bags."""


class Afforded(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request that is wanted."""

    request: Request | None
    """The largest that is affordable, no larger than wanted; None: not even the smallest is."""
    needed: int
    """Millionths of a credit for `request`, or for the smallest where that is too much."""
    reason: str
    crowded: bool = False
    """Whether processors are what is missing."""


def afford(
    allowance: Allowance, wanted: Request, smallest: Request, useful: int | None = None, resolution: int = 1
) -> Afforded:
    """Cut a request to what is left: time first, then processors, in multiples of the smallest's.

    Time first, because all processors for a part of the time bring the results sooner (Silva et al. 2011,
    abstract: the most speedup within a budget). `smallest` is the least that is of any use: the processors
    of one task, or of a node, for the shortest waiting task. `useful`: seconds for which a request is of use
    at most; None: for as long as wanted. A request that is cut lasts for a multiple of `resolution` seconds.
    """
    longest = wanted if useful is None else wanted.lasting(min(wanted.tr, max(useful, smallest.tr)))
    joint, least = allowance.joint, allowance.tariff.reservation(allowance.kind, smallest.p, smallest.tr)
    if joint is not None and joint.processors_left < longest.p:
        most = joint.processors_left - joint.processors_left % smallest.p
        if most < smallest.p:
            held = f"the bags of {joint.limit.name} hold {joint.held} of {joint.limit.processors} processors"
            reason = f"{held}: the smallest request has {smallest.p}"
            return Afforded(request=None, needed=least, reason=reason, crowded=True)
        longest = msgspec.structs.replace(longest, p=most)
    request = _largest(allowance, longest, smallest)
    if request is None:
        reason = (
            f"{_left(allowance)}: the smallest request, {_shown(smallest)}, needs {format_credits(least)} "
            f"(charged in units of {format_duration(allowance.tariff.charging_unit)})"
        )
        return Afforded(request=None, needed=least, reason=reason)
    if request != wanted:
        request = request.lasting(round_down(request.tr, resolution))
    needed = allowance.tariff.reservation(allowance.kind, request.p, request.tr)
    if request == wanted:
        reason = f"{_shown(wanted)} may cost {format_credits(needed)} credits, and {_left(allowance)}"
    else:
        reason = (
            f"cut from {_shown(wanted)} to {_shown(request)} ({format_credits(needed)} credits): "
            f"{_left(allowance)}"
        )
        if joint is not None and request.p < wanted.p:
            reason += f", {joint.processors_left} of {joint.limit.processors} processors ({joint.limit.name})"
    return Afforded(request=request, needed=needed, reason=reason)


def _largest(allowance: Allowance, wanted: Request, smallest: Request) -> Request | None:
    tariff, kind, amount = allowance.tariff, allowance.kind, allowance.amount
    if amount is None:
        return wanted
    tr = min(wanted.tr, tariff.affordable_seconds(kind, amount, wanted.p))
    if tr >= min(wanted.tr, smallest.tr):
        return wanted.lasting(tr)
    p = min(wanted.p, tariff.affordable_processors(kind, amount, smallest.tr))
    p -= p % smallest.p
    if p < smallest.p:
        return None
    tr = min(wanted.tr, tariff.affordable_seconds(kind, amount, p))
    return msgspec.structs.replace(wanted, p=p).lasting(tr)


def _left(allowance: Allowance) -> str:
    if allowance.amount is None:
        return "there is no budget"
    return f"{format_credits(allowance.amount)} credits are left ({allowance.budget})"


def _shown(request: Request) -> str:
    return f"{request.p} × {format_duration(request.tr)}"
