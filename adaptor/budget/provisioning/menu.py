"""What the user chooses from: a curve of cost against time, and six lines of it (BaTS, Budget Estimation)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from adaptor.budget.errors import BudgetError, InfeasibleError
from adaptor.budget.provisioning.allocation import least_time, time_of_least_cost
from adaptor.budget.provisioning.knapsack import Item, frontier
from adaptor.budget.provisioning.site_offers import Configuration, Line, Range, SiteOffer

if TYPE_CHECKING:
    from adaptor.budget.provisioning.knapsack import Counts, Floats

MOST_HORIZONS = 40
Z_90 = 1.645  # of a two-sided 90 % interval of the normal distribution


def curve(tasks: int, offers: Sequence[SiteOffer]) -> list[Configuration]:
    """The configurations worth choosing from, cheapest and slowest first.

    For each time at which a site would begin another unit the bounded knapsack is solved for every
    budget; what comes out is ordered by what it really takes and costs.

    Raises:
        BudgetError: nothing to do, or nothing to do it on.
    """
    if tasks < 1:
        raise BudgetError("a bag without tasks costs nothing")
    offers = [
        msgspec.structs.replace(offer, processors=min(offer.processors, tasks))
        for offer in offers
        if offer.processors
    ]
    if not offers:
        raise BudgetError("no site has a processor for us")
    found = [_by_horizon(tasks, offers, horizon) for horizon in _horizons(tasks, offers)]
    counts = np.concatenate([each for each in found if len(each)])
    seconds = estimated_seconds(tasks, offers, counts)
    costs = estimated_cost(offers, counts, seconds)
    chosen: list[Configuration] = []
    for row in np.lexsort((costs, seconds)).tolist():  # fastest first
        if not chosen or costs[row] < chosen[-1].cost:
            processors = {
                offer.name: int(count) for offer, count in zip(offers, counts[row], strict=True) if count
            }
            chosen.append(
                Configuration(processors=processors, seconds=float(seconds[row]), cost=float(costs[row]))
            )
    return chosen[::-1]


def estimated_seconds(tasks: int, offers: Sequence[SiteOffer], counts: Counts) -> Floats:
    """T_e = N / Σ (a_i / T_i), later by the time that is lost at start and end, of each row of counts."""
    speed = counts @ np.array([1 / offer.task.mean for offer in offers])
    lost = counts @ np.array([offer.lost / offer.task.mean for offer in offers])
    return np.asarray((tasks + lost) / speed)


def estimated_cost(offers: Sequence[SiteOffer], counts: Counts, seconds: Floats) -> Floats:
    """B_e = ceil(T_e / ATU) Σ a_i C_i, each site with its own unit, of each row of counts."""
    total = np.zeros(len(counts))
    for place, offer in enumerate(offers):
        units = np.ceil(seconds / offer.charging_unit - 1e-9)
        total += counts[:, place] * units * offer.cost(offer.charging_unit)
    return total


def _by_horizon(tasks: int, offers: Sequence[SiteOffer], horizon: float) -> Counts:
    """Undominated configurations that do all tasks by then."""
    items = [
        Item(
            cost=offer.cost(horizon),
            value=max(0.0, horizon - offer.lost) / offer.task.mean,
            most=offer.processors,
        )
        for offer in offers
    ]
    found = frontier(items)
    return found.counts[found.values >= tasks * (1 - 1e-9)]


def _horizons(tasks: int, offers: Sequence[SiteOffer]) -> list[float]:
    """Ends of charging units from the least time to well beyond the time of the least cost.

    Where there are more than can be tried, evenly spaced ones in the logarithm of time.
    """
    low = least_time(tasks, offers)
    high = 2 * time_of_least_cost(tasks, offers, low) + 2 * max(offer.charging_unit for offer in offers)
    high = max(high, max(offer.lost + offer.task.mean for offer in offers))
    number = sum((high - low) / offer.charging_unit for offer in offers)
    if number > MOST_HORIZONS:
        return [float(end) for end in np.geomspace(low, high, MOST_HORIZONS)]
    ends = {
        units * offer.charging_unit
        for offer in offers
        for units in range(math.ceil(low / offer.charging_unit), math.floor(high / offer.charging_unit) + 1)
    }
    return sorted({low, high, *ends})


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

    Raises BudgetError: as `curve`.
    """
    found = curve(tasks, offers)
    ends = {"cheapest": found[0].cost, "fastest": found[-1].cost}
    lines = []
    for name, end, share in CHOICES:
        budget = max(ends["cheapest"], ends[end] * share)
        configuration = within(found, budget)
        seconds, cost = _ranges(tasks, offers, configuration, sampled, factor**Z_90)
        lines.append(Line(name=name, budget=budget, configuration=configuration, seconds=seconds, cost=cost))
    return lines


def within(found: Sequence[Configuration], budget: float) -> Configuration:
    """The fastest of a curve within the budget.

    Raises:
        InfeasibleError: even the cheapest costs more.
    """
    affordable = [choice for choice in found if choice.cost <= budget * (1 + 1e-9)]
    if not affordable:
        raise InfeasibleError(
            f"the cheapest way costs {found[0].cost:,.6g} credits, and the budget is {budget:,.6g}",
            needed_seconds=None,
            needed_credits=found[0].cost,
        )
    return affordable[-1]


def _ranges(
    tasks: int, offers: Sequence[SiteOffer], configuration: Configuration, sampled: int, times: float
) -> tuple[Range, Range]:
    """The ranges of seconds and credits of a configuration.

    Means are known from a sample, and the bag is one too; the last tasks end late at the worst. `times`: the
    factor by which all may take longer, or shorter.
    """
    used = [offer for offer in offers if configuration.processors.get(offer.name)]
    counts = np.array([[configuration.processors[offer.name] for offer in used]])
    spread = max(offer.task.deviation / offer.task.mean for offer in used)
    off = min(0.9, Z_90 * spread * math.sqrt(1 / max(1, sampled) + 1 / tasks))
    last = max(
        offer.task.last_end(int(count), 0.95 ** (1 / len(used)))
        for offer, count in zip(used, counts[0], strict=True)
    )
    high = (configuration.seconds * (1 + off) + last) * times
    seconds = Range(configuration.seconds * (1 - off) / times, high)
    costs = [float(estimated_cost(used, counts, np.array([each]))[0]) for each in (seconds.low, seconds.high)]
    return seconds, Range(*costs)
