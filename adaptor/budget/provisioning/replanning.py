"""Whether the slots that were chosen from a quote will do, by what was learned since. Pure.

Oprescu, Kielmann, Leahu, "Task Farming in Contrail", slides "Progress Monitoring" and "Re-evaluate the
machine configuration".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.bats import Plan, expected_seconds, reevaluate
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.units import format_duration


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """By how much the chosen slots may miss what was chosen, relative, before others are looked for."""

    name: str
    time: float
    budget: float
    gain: float
    """Other slots are taken for the sake of time only if they are sooner by this share."""


DAEMON = Tolerance(name="daemon", time=0.05, budget=0.05, gain=0.05)
"""What every bag that was chosen from a quote meets."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What is left to be done, and to do it with."""

    tasks: float
    """Running ones count by what is left of them."""
    seconds: float
    """Until the deadline."""
    budget: float
    """Credits."""


class Replan(msgspec.Struct, frozen=True):
    """Other slots than those that were chosen."""

    slots: dict[str, int]
    """By site."""
    seconds: float
    """From now until the rest is expected to be done on them."""
    reason: str


class NoSlots(msgspec.Struct, frozen=True):
    """Budget or deadline will be missed, and no slots do the rest for what is left of the budget."""

    needed: float | None
    """Credits that would do."""


def replan(
    left: Left, offers: Sequence[SiteOffer], slots: Mapping[str, int], tolerance: Tolerance = DAEMON
) -> Replan | NoSlots | None:
    """The slots that do the rest soonest for what is left; None: the chosen ones are kept.

    `offers` say what is held, and for how long it is paid already: that counts for nothing.

    Raises:
        BudgetError: a number that cannot be.
    """
    seconds = expected_seconds(left.tasks, offers, dict(slots))
    cost = _cost(offers, slots, seconds)
    late = seconds > max(0.0, left.seconds) * (1 + tolerance.time)
    dear = cost > max(0.0, left.budget) * (1 + tolerance.budget)
    if left.tasks <= 0 or not (late or dear):
        return None
    try:
        plan = reevaluate(left.tasks, offers, max(0.0, left.budget))
    except InfeasibleError as error:
        return NoSlots(error.needed_credits)
    found = {each.name: count for each in offers if (count := plan.processors(each.name))}
    better = dear or plan.seconds < seconds * (1 - tolerance.gain)
    if not better or found == {site: count for site, count in slots.items() if count}:
        return None
    return Replan(found, plan.seconds, _reason(left, seconds, cost, plan, found))


def _cost(offers: Sequence[SiteOffer], slots: Mapping[str, int], seconds: float) -> float:
    """Credits still to be charged for so many slots; those that are held come first, the longest paid one."""
    if math.isinf(seconds):
        return math.inf
    total = 0.0
    for each in offers:
        wanted = slots.get(each.name, 0)
        for held in sorted(each.held, key=lambda held: -held.paid):
            kept = min(wanted, held.processors)
            total += kept * each.cost(seconds - held.paid)
            wanted -= kept
        total += wanted * each.cost(seconds)
    return total


def _reason(left: Left, seconds: float, cost: float, plan: Plan, found: Mapping[str, int]) -> str:
    places = ", ".join(f"{count} at {site}" for site, count in found.items())
    chosen = f"take {format_duration(seconds)} and {cost:,.4g} credits more"
    return (
        f"the chosen slots would {chosen if math.isfinite(seconds) else 'never do it'}, and "
        f"{format_duration(max(0.0, left.seconds))} and {max(0.0, left.budget):,.4g} credits are left: "
        f"{places} take {format_duration(plan.seconds)} and {plan.cost:,.4g}"
    )
