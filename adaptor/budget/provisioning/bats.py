"""Re-evaluating a running bag: fewer tasks, less money, and time that is paid already (BaTS).

Oprescu, Kielmann, Leahu, "Task Farming in Contrail", slides "Progress Monitoring" and "Re-evaluate the
machine configuration".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.knapsack import Item, frontier, relaxed_value
from adaptor.budget.provisioning.site_offers import SiteOffer

MOST_ENDS = 400
"""Ends of charging units that are tried."""


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one group of processors."""

    site: str
    group: int
    """Place among `held` of the offer; -1: still to be bought."""
    processors: int
    """To be held until the plan's end; the others leave when their paid time is over."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    keeps: tuple[Keep, ...]
    seconds: float
    """Expected, from now until the bag is done."""
    cost: float
    """Credits that are still to be charged."""

    def processors(self, site: str) -> int:
        return sum(keep.processors for keep in self.keeps if keep.site == site)


class _Group(msgspec.Struct, frozen=True):
    offer: SiteOffer
    place: int
    size: int
    paid: float
    """Seconds that cost nothing more."""
    lost: float
    """Seconds of no work, at the start-up and at the end of the bag."""

    def cost(self, horizon: float) -> float:
        """To hold one processor until then."""
        return self.offer.cost(horizon - self.paid)

    def free(self, horizon: float) -> float:
        """Tasks that one processor does before then in the time that is paid already."""
        return max(0.0, min(self.paid, horizon) - self.lost) / self.offer.task.mean

    def more(self, horizon: float) -> float:
        """Tasks that one processor does beside those, if it is held until then."""
        return max(0.0, horizon - self.lost) / self.offer.task.mean - self.free(horizon)


def reevaluate(tasks: float, offers: Sequence[SiteOffer], budget: float) -> Plan:
    """The least time for what remains, within what is left of the budget.

    `tasks` may count running ones by what is left of them. Paid time is used for nothing; the bounded
    knapsack decides who is held longer and who is bought.

    Raises:
        InfeasibleError: the budget does not hold the rest; the user has to be asked.
        BudgetError: a number that cannot be.
    """
    if math.isnan(budget) or budget < 0:
        raise BudgetError(f"what is left of the budget must be 0 credits or more, not {budget:g}")
    groups = _groups(offers)
    if not groups:
        raise BudgetError("no site has a processor for us")
    if tasks <= 0:
        return Plan(keeps=(), seconds=0.0, cost=0.0)
    _check_affordable(tasks, groups, budget)
    for horizon in _ends(tasks, groups):
        plan = _by(horizon, tasks, groups, budget)
        if plan is not None:
            return plan
    raise _too_dear(tasks, groups, budget)


def _groups(offers: Sequence[SiteOffer]) -> list[_Group]:
    groups = [_Group(each, -1, each.fresh, each.wait, each.lost) for each in offers]
    groups += [
        _Group(each, place, held.processors, held.paid, each.lost - each.startup - each.wait)
        for each in offers
        for place, held in enumerate(each.held)
    ]
    return [group for group in groups if group.size]


def _by(horizon: float, tasks: float, groups: Sequence[_Group], budget: float) -> Plan | None:
    items = [Item(cost=each.cost(horizon), value=each.more(horizon), most=each.size) for each in groups]
    needed = (tasks - sum(each.free(horizon) * each.size for each in groups)) * (1 - 1e-9)
    if relaxed_value(items, budget) < needed:
        return None
    found = frontier(items)
    row = found.best(budget)
    if row is None or found.values[row] < needed:
        return None
    # Of all that do it, the cheapest would be slower; the budget is there to be used.
    counts = found.counts[row]
    keeps = tuple(
        Keep(site=each.offer.name, group=each.place, processors=int(count))
        for each, count in zip(groups, counts, strict=True)
        if count
    )
    seconds = _time(tasks, groups, counts.tolist(), horizon)
    cost = sum(int(count) * each.cost(seconds) for each, count in zip(groups, counts, strict=True))
    return Plan(keeps=keeps, seconds=seconds, cost=cost)


def _time(tasks: float, groups: Sequence[_Group], counts: Sequence[int], horizon: float) -> float:
    """When these processors have done the tasks, by bisection."""
    low, high = 0.0, horizon
    while high - low > 1e-4 * horizon:
        middle = (low + high) / 2
        done = sum(
            each.size * each.free(middle) + count * each.more(middle)
            for each, count in zip(groups, counts, strict=True)
        )
        if done < tasks:
            low = middle
        else:
            high = middle
    return high


def _ends(tasks: float, groups: Sequence[_Group]) -> Iterator[float]:
    """The instants at which some processor would begin another unit, from the first possible end on."""
    speed = sum(each.size / each.offer.task.mean for each in groups)
    first = tasks / speed
    steps = sorted({(each.paid, each.offer.charging_unit) for each in groups})
    last = tasks * max(each.offer.task.mean for each in groups) + sum(max(step) for step in steps)
    last += max(each.lost for each in groups)
    horizon, tried = first, 0
    while horizon < last:
        horizon = min(_next_end(horizon, paid, unit) for paid, unit in steps)
        # Units that are short beside the bag need not all be tried, nor those long after the first end.
        horizon = max(horizon, first * (1 + 0.002 * tried))
        yield horizon
        tried += 1
        if tried > MOST_ENDS:
            first *= 1.1


def _next_end(after: float, paid: float, unit: float) -> float:
    end = paid + (math.floor((after - paid) / unit + 1e-6) + 1) * unit
    return end if after >= paid else min(end, paid)


def _rates(groups: Sequence[_Group]) -> float:
    """Credits per task of the cheapest."""
    return min(each.offer.cost_per_task for each in groups)


def _check_affordable(tasks: float, groups: Sequence[_Group], budget: float) -> None:
    if _least_cost(tasks, groups) > budget * (1 + 1e-9):
        raise _too_dear(tasks, groups, budget)


def _least_cost(tasks: float, groups: Sequence[_Group]) -> float:
    """What is not done in paid time costs at least as much as on the cheapest site."""
    free = sum(each.size * each.free(math.inf) for each in groups)
    return max(0.0, tasks - free) * _rates(groups)


def _too_dear(tasks: float, groups: Sequence[_Group], budget: float) -> InfeasibleError:
    needed = max(_least_cost(tasks, groups), min(each.offer.smallest for each in groups))
    return InfeasibleError(
        f"{tasks:,.0f} tasks need {needed:,.6g} credits at the least, and {budget:,.6g} are left",
        needed_seconds=None,
        needed_credits=needed,
    )


def expected_seconds(tasks: float, offers: Sequence[SiteOffer], processors: dict[str, int]) -> float:
    """From now until the tasks are done, if so many processors of each site go on working."""
    at_work = [(processors.get(each.name, 0), each) for each in offers]
    speed = sum(count / each.task.mean for count, each in at_work)
    lost = sum(count * (each.lost - each.startup - each.wait) / each.task.mean for count, each in at_work)
    return (tasks + lost) / speed if speed else math.inf
