"""Which processors to hold on which sites: the least cost for a time, the least time for a cost.

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
from adaptor.budget.provisioning.ways import CONFIDENCE, Way, all_ways, capacity, least_cost, relaxed_cost
from adaptor.units import format_duration

PRECISION = 1e-3  # relative, of the times that are searched for


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
    """What to hold so that the tasks are done."""

    holdings: tuple[Holding, ...]
    seconds: float
    """From now until the last task has ended."""
    cost: float

    def processors(self, site: str) -> int:
        return sum(holding.processors for holding in self.holdings if holding.site == site)


def cheapest(
    tasks: int,
    offers: Sequence[SiteOffer],
    deadline: float,
    budget: float = math.inf,
    confidence: float = CONFIDENCE,
) -> Allocation:
    """The least cost for `tasks` by the deadline, in seconds from now (§3, choice 1).

    Raises:
        InfeasibleError: too late, or beyond the budget; it says what is needed.
        BudgetError: a number that cannot be.
    """
    _check(tasks, offers, budget)
    if deadline <= 0:
        raise BudgetError(f"the deadline is {format_duration(-deadline)} in the past")
    if tasks == 0:
        return Allocation(holdings=(), seconds=0.0, cost=0.0)
    ways = all_ways(offers, deadline, confidence)
    counts = least_cost(ways, offers, tasks)
    if counts is None:
        raise too_late(tasks, deadline, least_time(tasks, offers, confidence))
    found = _allocation(ways, counts, offers, deadline)
    if found.cost > budget * (1 + 1e-9):
        raise too_dear(tasks, budget, found.cost, f" within {format_duration(deadline)}")
    return found


def fastest(
    tasks: int,
    offers: Sequence[SiteOffer],
    budget: float,
    confidence: float = CONFIDENCE,
) -> Allocation:
    """The least time for `tasks` within the budget, in credits (§3, choice 2).

    The time is searched by its relaxation, then by allocations of whole processors.

    Raises:
        InfeasibleError: the budget does not hold the tasks however long they may take.
        BudgetError: a number that cannot be.
    """
    _check(tasks, offers, budget)
    if tasks == 0:
        return Allocation(holdings=(), seconds=0.0, cost=0.0)
    low, high = least_time(tasks, offers, confidence), _most_time(tasks, offers)
    least = _least_cost(tasks, offers, high, confidence)
    if least.cost > budget * (1 + 1e-9):
        raise too_dear(tasks, budget, least.cost, "")
    low = _relaxed_time(tasks, offers, budget, low, high, confidence)
    return _gallop(tasks, offers, budget, low, confidence) or least


def least_time(tasks: int, offers: Sequence[SiteOffer], confidence: float = CONFIDENCE) -> float:
    """Seconds in which the tasks can be done, whatever the cost (eq. 9).

    Raises BudgetError: there is no processor.
    """
    low, high = 0.0, _most_time(tasks, offers)
    while high - low > PRECISION / 10 * high:
        middle = (low + high) / 2
        if capacity(all_ways(offers, middle, confidence), offers) < tasks:
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


def _least_cost(tasks: int, offers: Sequence[SiteOffer], high: float, confidence: float) -> Allocation:
    """The least cost, however long it may take.

    Where units count whole, a processor is held until the deadline or for a little less, so a deadline far
    beyond the work is expensive. Not so with one processor that does all tasks where a task costs least.
    """
    best = min((offer for offer in offers if offer.processors), key=lambda offer: offer.cost_per_task)
    tail = best.task.last_end(best.processors, confidence ** (1 / len(offers)))
    alone = best.wait + best.startup + tail + tasks * best.task.mean
    found = [cheapest(tasks, offers, deadline, confidence=confidence) for deadline in (high, max(alone, 0.0))]
    return min(found, key=lambda each: each.cost)


def _most_time(tasks: int, offers: Sequence[SiteOffer]) -> float:
    """No sensible allocation takes longer: each site that has a processor can do all by then, on one."""
    return max(
        offer.wait + offer.startup + (tasks + 1) * (offer.task.mean + 10 * offer.task.deviation)
        for offer in offers
        if offer.processors
    )


def _relaxed_time(
    tasks: int, offers: Sequence[SiteOffer], budget: float, low: float, high: float, confidence: float
) -> float:
    """No whole numbers of processors are faster than this."""
    while high - low > PRECISION * low:
        middle = math.sqrt(low * high)
        if relaxed_cost(all_ways(offers, middle, confidence), offers, tasks) > budget:
            low = middle
        else:
            high = middle
    return low


def _gallop(
    tasks: int, offers: Sequence[SiteOffer], budget: float, low: float, confidence: float
) -> Allocation | None:
    """The first time for which there are whole numbers within the budget: growing steps, then bisection."""
    highest, step = _most_time(tasks, offers), PRECISION
    found, high = _within(tasks, offers, budget, low, confidence), low
    while found is None:
        if high >= highest:
            return None
        low, high = high, min(highest, high * (1 + step))
        step *= 2
        found = _within(tasks, offers, budget, high, confidence)
    while high - low > 5 * PRECISION * low:
        middle = (low + high) / 2
        better = _within(tasks, offers, budget, middle, confidence)
        if better is None:
            low = middle
        else:
            found, high = better, middle
    return found


def _within(
    tasks: int, offers: Sequence[SiteOffer], budget: float, deadline: float, confidence: float
) -> Allocation | None:
    ways = all_ways(offers, deadline, confidence)
    counts = least_cost(ways, offers, tasks)
    found = None if counts is None else _allocation(ways, counts, offers, deadline)
    return None if found is None or found.cost > budget else found


def _allocation(
    ways: Sequence[Way], counts: Sequence[float], offers: Sequence[SiteOffer], seconds: float
) -> Allocation:
    holdings = tuple(
        _holding(way, count, offers[way.site].name)
        for way, count in zip(ways, counts, strict=True)
        if count > 1e-6
    )
    return Allocation(holdings=holdings, seconds=seconds, cost=sum(holding.cost for holding in holdings))


def _holding(way: Way, count: float, site: str) -> Holding:
    """A part of a processor is a whole one that leaves earlier, and all of a holding leave alike."""
    processors = math.ceil(count - 1e-6)
    return Holding(
        site=site,
        processors=processors,
        bought=way.group < 0,
        seconds=way.seconds * count / processors,
        cost=count * way.cost,
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
