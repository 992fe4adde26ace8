"""The allocation of Ricciardi & Hwang (2011) as they print it: work flows, and nobody waits for its end.

`allocation.py` has ours. This one is what ours is measured against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning import milp
from adaptor.budget.provisioning.milp_columns import Column
from adaptor.budget.provisioning.site_offers import SiteOffer


def least_seconds(tasks: int, offers: Sequence[SiteOffer]) -> float:
    """The least time: every processor works (eq. 9)."""
    return tasks / sum(each.processors / each.task.mean for each in offers)


def cost_of_least_seconds(tasks: int, offers: Sequence[SiteOffer]) -> float:
    """Credits for the least time (eq. 10)."""
    rate = sum(each.processors * each.price / HOUR for each in offers)
    return least_seconds(tasks, offers) * rate


def least_cost(tasks: int, offers: Sequence[SiteOffer]) -> tuple[float, float]:
    """Credits, and the least seconds for them: the site with the cheapest tasks works alone (§3)."""
    cost = min(each.cost_per_task for each in offers)
    equal = [each for each in offers if each.cost_per_task == cost]
    return tasks * cost, least_seconds(tasks, equal)


def for_time(tasks: int, offers: Sequence[SiteOffer], seconds: float) -> list[int] | None:
    """Processors per site for the least C_prod in this time (eq. 8, choice 1); None: there are not enough.

    By the program of `allocation.cheapest`.
    """
    if seconds <= 0:
        return None
    found = milp.least_cost(constant_ways(offers, seconds), offers, tasks, constant=True)
    return None if found is None else [int(each) for each in found]


def constant_ways(offers: Sequence[SiteOffer], seconds: float) -> list[Column]:
    """One processor of each site, held for the whole time; its work flows (eq. 1 and 5)."""
    return [
        Column(
            site=site,
            group=-1,
            seconds=seconds,
            tasks=seconds / each.task.mean,
            cost=seconds * each.price / HOUR,
        )
        for site, each in enumerate(offers)
    ]


def for_cost(tasks: int, offers: Sequence[SiteOffer], credits: float) -> list[int] | None:
    """Processors per site for the least time at this cost (eq. 8, choice 2); None: it is not enough.

    The cost N Σ n C / Σ (n / T) <= B, a ratio, is the same as Σ n (N C - B / T) <= 0.
    """
    throughput = [1 / each.task.mean for each in offers]
    excess = [
        tasks * each.price / HOUR - credits * speed for each, speed in zip(offers, throughput, strict=True)
    ]
    rows = [(excess, -math.inf, 0.0)]
    found = milp.minimise([-speed for speed in throughput], rows, _sizes(offers), [True] * len(offers))
    return None if found is None or not any(found) else [int(each) for each in found]


def _sizes(offers: Sequence[SiteOffer]) -> list[int]:
    return [each.processors for each in offers]
