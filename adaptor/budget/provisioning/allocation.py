"""Processors to hold on each site: the least cost for a time, the least time for a cost.

Ricciardi & Hwang, "Cost-Aware Dynamic Resource Allocation in Distributed Computing Infrastructures"
(2011), §2 and §3. Theirs lets work flow (eq. 1 to 8); ours also knows that the last tasks must end,
that a processor's first task starts at once, that begun charging units are charged whole, and that what
is held and paid already costs nothing more. `adaptor_experiments.ricciardi.equations` is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.errors import BudgetError, InfeasibleError, too_dear, too_late
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.ways import (
    CONFIDENCE,
    EQUAL,
    PART,
    Way,
    all_ways,
    capacity,
    cost_of,
    least_cost,
    relaxed_cost,
)
from adaptor.units import format_duration

PRECISION = 1e-3  # relative, of the times that are searched for
WIDEST = 0.05  # relative: whole units may hold the tasks in one time and not in a little more


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """Processors of one site that are held equally long."""

    site: str
    processors: int
    bought: bool
    """Whether they are still to be bought; else they are held already."""
    seconds: float
    cost: float
    """Credits still to be charged for all of them."""
    tasks: float
    """Expected to be done by all of them."""


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """Processors to hold until the tasks are done."""

    holdings: tuple[Holding, ...]
    seconds: float
    """Seconds from now until the last task has ended."""
    cost: float

    def processors(self, site: str) -> int:
        return sum(holding.processors for holding in self.holdings if holding.site == site)


def cheapest(
    tasks: int,
    offers: Sequence[SiteOffer],
    deadline: float = math.inf,
    budget: float = math.inf,
    confidence: float = CONFIDENCE,
) -> Allocation:
    """The least cost for `tasks` by the deadline, in seconds from now (§3, choice 1).

    Without a deadline: the least cost, however long it may take.

    Raises:
        InfeasibleError: too late, or beyond the budget; it says what is needed.
        BudgetError: a number that cannot be.
    """
    _check(tasks, offers, budget)
    if deadline <= 0:
        raise BudgetError(f"the deadline is {format_duration(-deadline)} in the past")
    if tasks == 0:
        return Allocation(holdings=(), seconds=0.0, cost=0.0)
    deadlines = [deadline] if math.isfinite(deadline) else _ample(tasks, offers, confidence)
    found = [plan for each in deadlines if (plan := _within(tasks, offers, each, confidence)) is not None]
    if not found:
        raise too_late(tasks, deadline, least_time(tasks, offers, confidence))
    least = min(found, key=lambda plan: plan.cost)
    if least.cost > budget * (1 + EQUAL):
        within = f" within {format_duration(deadline)}" if math.isfinite(deadline) else ""
        raise too_dear(tasks, budget, least.cost, within)
    return least if math.isfinite(deadline) else _without_idle_end(least, offers, confidence)


def fastest(
    tasks: int,
    offers: Sequence[SiteOffer],
    budget: float = math.inf,
    confidence: float = CONFIDENCE,
) -> Allocation:
    """The least time for `tasks` within the budget, in credits (§3, choice 2), at the least cost for it.

    The time is searched by its relaxation, then by allocations of whole processors.

    Raises:
        InfeasibleError: the budget does not hold the tasks however long they may take.
        BudgetError: a number that cannot be.
    """
    _check(tasks, offers, budget)
    if tasks == 0:
        return Allocation(holdings=(), seconds=0.0, cost=0.0)
    soonest = least_time(tasks, offers, confidence)
    if math.isinf(budget):
        return cheapest(tasks, offers, soonest, confidence=confidence)
    least = cheapest(tasks, offers, budget=budget, confidence=confidence)
    relaxed = _relaxed_time(tasks, offers, budget, soonest, confidence)
    return _gallop(tasks, offers, budget, relaxed, confidence) or least


def least_time(tasks: int, offers: Sequence[SiteOffer], confidence: float = CONFIDENCE) -> float:
    """Seconds in which the tasks can be done, whatever the cost (eq. 9).

    Raises BudgetError: there is no processor.
    """
    low, high = 0.0, _most_time(tasks, offers)
    while high - low > PRECISION / 10 * high:
        middle = (low + high) / 2
        if capacity(all_ways(offers, middle, 0, confidence), offers) < tasks:
            low = middle
        else:
            high = middle
    return high


def time_of_least_cost(
    tasks: int, offers: Sequence[SiteOffer], soonest: float, confidence: float = CONFIDENCE
) -> float:
    """The least seconds in which only the sites with the cheapest tasks work (§3, T at the least cost).

    `soonest`: the least time in which all sites together do them.
    """
    with_processors = [offer for offer in offers if offer.processors]
    least = min(offer.cost_per_task for offer in with_processors)
    equal = [offer for offer in with_processors if offer.cost_per_task <= least * (1 + 1e-9)]
    # `all_ways` divides the certainty among the sites: those left out take their parts with them.
    theirs = confidence ** (len(equal) / len(offers))
    return soonest if len(equal) == len(offers) else max(least_time(tasks, equal, theirs), soonest)


def _ample(tasks: int, offers: Sequence[SiteOffer], confidence: float) -> list[float]:
    """Deadlines of which one allows for the least cost: ample ones, and those of one processor alone.

    A processor that is held until an ample deadline pays its start-up only in part of those that one alone
    does all tasks with.
    """
    found = [_most_time(tasks, offers)]
    for offer in offers:
        if offer.processors:
            tail = offer.task.last_end(offer.processors, confidence ** (1 / len(offers)))
            found.append(offer.wait + offer.startup + tail + tasks * offer.task.mean)
    return found


def _without_idle_end(plan: Allocation, offers: Sequence[SiteOffer], confidence: float) -> Allocation:
    """The plan with the end of the last tasks in the place of an ample deadline."""
    used = [(offer, held) for offer in offers for held in plan.holdings if held.site == offer.name]
    ends = [
        held.seconds + offer.task.last_end(held.processors, confidence ** (1 / len(offers)))
        for offer, held in used
    ]
    return msgspec.structs.replace(plan, seconds=min(plan.seconds, max(ends)))


def _most_time(tasks: int, offers: Sequence[SiteOffer]) -> float:
    """Seconds that no sensible allocation exceeds: each site that has a processor can do all by then, on
    one."""
    return max(
        offer.wait + offer.startup + (tasks + 1) * (offer.task.mean + 10 * offer.task.deviation)
        for offer in offers
        if offer.processors
    )


def _relaxed_time(
    tasks: int, offers: Sequence[SiteOffer], budget: float, soonest: float, confidence: float
) -> float:
    """Seconds below which no whole numbers of processors are faster."""
    low, high = soonest, _most_time(tasks, offers)
    while high - low > PRECISION * low:
        middle = math.sqrt(low * high)
        if relaxed_cost(all_ways(offers, middle, tasks, confidence), offers, tasks) > budget:
            low = middle
        else:
            high = middle
    return low


def _gallop(
    tasks: int, offers: Sequence[SiteOffer], budget: float, low: float, confidence: float
) -> Allocation | None:
    """The first time for which there are whole numbers within the budget: growing steps, then bisection."""

    def affordable(seconds: float) -> Allocation | None:
        plan = _within(tasks, offers, seconds, confidence)
        return None if plan is None or plan.cost > budget * (1 + EQUAL) else plan

    highest, step = _most_time(tasks, offers), PRECISION
    found, high = affordable(low), low
    while found is None:
        if high >= highest:
            return None
        low, high = high, min(highest, high * (1 + step))
        step = min(2 * step, WIDEST)
        found = affordable(high)
    while high - low > 5 * PRECISION * low:
        middle = (low + high) / 2
        better = affordable(middle)
        if better is None:
            low = middle
        else:
            found, high = better, middle
    return found


def _within(tasks: int, offers: Sequence[SiteOffer], seconds: float, confidence: float) -> Allocation | None:
    """The least cost within a time; None: the time is too short for the tasks."""
    held = least_cost(all_ways(offers, seconds, tasks, confidence), offers, tasks)
    if held is None:
        return None
    holdings = tuple(_holding(way, count, offers[way.site].name) for way, count in held)
    return Allocation(holdings=holdings, seconds=seconds, cost=cost_of(held))


def _holding(way: Way, count: float, site: str) -> Holding:
    """A part of a processor is a whole one that leaves earlier, and all of a holding leave alike."""
    processors = math.ceil(count - PART)
    return Holding(
        site=site,
        processors=processors,
        bought=way.group < 0,
        seconds=way.seconds * count / processors,
        cost=cost_of([(way, count)]),
        tasks=count * way.tasks,
    )


def _check(tasks: int, offers: Sequence[SiteOffer], budget: float) -> None:
    if tasks < 0:
        raise BudgetError(f"the number of tasks must be 0 or more, not {tasks}")
    if not any(offer.processors for offer in offers):
        raise BudgetError("no site has a processor for us")
    if len({offer.name for offer in offers}) < len(offers):
        raise BudgetError("two sites have the same name")
    if math.isnan(budget):
        raise BudgetError("the budget is no number")
    smallest = min((offer for offer in offers if offer.processors), key=lambda offer: offer.smallest)
    if tasks and budget < smallest.smallest and not any(offer.held for offer in offers):
        raise InfeasibleError(
            f"a budget of {budget:g} credits holds no request: the smallest, 1 processor of "
            f"{smallest.name} for {format_duration(smallest.task.mean)}, costs {smallest.smallest:g}",
            needed_seconds=None,
            needed_credits=smallest.smallest,
        )
