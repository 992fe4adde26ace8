"""Choices of the user: six lines of the curve of cost against time (BaTS, Budget Estimation). Pure."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.allocation import Allocation, cheapest, fastest
from adaptor.budget.provisioning.menu_line import Line
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.ways import EQUAL
from adaptor.model import Estimate

Z_90 = 1.645  # of a two-sided 90 % interval of the normal distribution
CHOICES = (
    ("cheapest", "cheapest", 1.0),
    ("cheapest +10 %", "cheapest", 1.1),
    ("cheapest +20 %", "cheapest", 1.2),
    ("fastest -20 %", "fastest", 0.8),
    ("fastest -10 %", "fastest", 0.9),
    ("fastest", "fastest", 1.0),
)
"""Name, the cost from which it is reckoned, and the share of it that may be spent."""


def menu(tasks: int, offers: Sequence[SiteOffer], sampled: int, factor: float = 1.0) -> list[Line]:
    """The six choices, more money never slower.

    Args:
        sampled: tasks that have taught the runtimes.
        factor: within which the mean of this bag is expected of theirs (one standard deviation of the
            logarithm); 1: they are a sample of it.

    Raises:
        BudgetError: nothing to do, or nothing to do it on.
    """
    if tasks < 1:
        raise BudgetError("a bag without tasks costs nothing")
    useful = [
        msgspec.structs.replace(offer, processors=min(offer.processors, tasks), together=True)
        for offer in offers
    ]
    ends = {"cheapest": _cheapest(tasks, useful), "fastest": fastest(tasks, useful)}
    budgets = {name: max(ends["cheapest"].cost, ends[end].cost * share) for name, end, share in CHOICES}
    curve = [*ends.values()]
    for budget in budgets.values():
        with contextlib.suppress(InfeasibleError):  # more than one processor would cost more
            curve.append(fastest(tasks, useful, budget))
    lines = []
    for name, budget in budgets.items():
        within = [plan for plan in curve if plan.cost <= budget * (1 + EQUAL)]
        soonest = min(within, key=lambda plan: (plan.seconds, plan.cost))
        lines.append(_line(name, budget, soonest, tasks, useful, sampled, factor))
    return lines


def _cheapest(tasks: int, offers: Sequence[SiteOffer]) -> Allocation:
    """One processor alone, as each further one pays another start-up and another end; or more at one site
    that end before a charging unit which one would begin.

    Raises BudgetError: there is no processor.
    """
    found: list[Allocation] = []
    for offer in offers:
        if offer.processors:
            found.append(cheapest(tasks, [msgspec.structs.replace(offer, processors=1)]))
            with contextlib.suppress(InfeasibleError):
                found.append(fastest(tasks, [offer], found[-1].cost))
    if not found:
        raise BudgetError("no site has a processor for us")
    return min(found, key=lambda plan: (plan.cost, plan.seconds))


def _line(
    name: str,
    budget: float,
    found: Allocation,
    tasks: int,
    offers: Sequence[SiteOffer],
    sampled: int,
    factor: float,
) -> Line:
    """Means are known from a sample, and the bag is one too; the last tasks end late at the worst."""
    processors: dict[str, int] = defaultdict(int)
    for holding in found.holdings:
        processors[holding.site] += holding.processors
    used = {offer.name: offer for offer in offers if offer.name in processors}
    spread = max(offer.task.deviation / offer.task.mean for offer in used.values())
    off = min(0.9, Z_90 * spread * math.sqrt(1 / max(1, sampled) + 1 / tasks))
    last = max(offer.task.last_end(processors[name], 0.95 ** (1 / len(used))) for name, offer in used.items())
    low = found.seconds * (1 - off) / factor**Z_90
    high = (found.seconds * (1 + off) + last) * factor**Z_90
    costs = [
        sum(
            holding.processors * used[holding.site].cost(holding.seconds * seconds / found.seconds)
            for holding in found.holdings
        )
        for seconds in (low, high)
    ]
    reserved = sum(processors[site] * offer.cost(offer.spare) for site, offer in used.items())
    last_request = max(offer.cost(offer.spare + last) for offer in used.values())
    return Line(
        name=name,
        budget=budget,
        processors=dict(processors),
        seconds=Estimate(low, found.seconds, high),
        cost=Estimate(min(costs[0], found.cost), found.cost, max(costs[1], found.cost)),
        reserved=reserved + last_request,
    )
