"""The allocation of Ricciardi & Hwang (2011) as they print it: work flows, and its end does not count.

`allocation.py` has ours. This one is what ours is measured against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.ways import EQUAL, Way, capacity, relaxed_cost

GAP = 1e-4  # relative, between the solution of a program and the best that is possible
NODES = 300  # of the search tree; the best solution by then counts
SECONDS = 2.0
"""Never reached by programs of ten sites; answers that depend on the machine are the last resort."""
NEARLY = 0.999  # of the cost that no whole numbers can beat
TINY = 1e-9
"""Relative cost of a processor in addition to its time: of equal costs that with fewer processors wins."""


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

    Whole processors, all of which are held until the last task is done (eq. 7). Where they could do more than
    the tasks, they are done sooner and cost less by that (eq. 8): the least cost for what is done, by
    Dinkelbach. What is done counts as worth what it costs so far, and the first ratio is a little below the
    least one: of equal ratios the least costs are found, and two programs are enough as a rule.
    """
    if seconds <= 0:
        return None
    ways = constant_ways(offers, seconds)
    if capacity(ways, offers) < tasks:
        return None
    dearest = max((way.cost for way in ways), default=0.0) or 1.0
    costs = [way.cost / dearest + TINY for way in ways]
    done = [way.tasks / tasks for way in ways]
    ratio = NEARLY * relaxed_cost(ways, offers, tasks) / dearest
    best: list[int] | None = None
    while True:
        worth = [cost - ratio * part for cost, part in zip(costs, done, strict=True)]
        found = minimise(worth, [(done, 1.0, math.inf)], _sizes(offers), [True] * len(offers))
        if found is None:
            return best
        reached = _dot(costs, found) / _dot(done, found)
        if best is not None and reached >= ratio * (1 - EQUAL):
            return best
        best, ratio = [int(count) for count in found], reached


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def constant_ways(offers: Sequence[SiteOffer], seconds: float) -> list[Way]:
    """One processor of each site, held for the whole time; its work flows (eq. 1 and 5)."""
    return [
        Way(
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
    found = minimise([-speed for speed in throughput], rows, _sizes(offers), [True] * len(offers))
    return None if found is None or not any(found) else [int(each) for each in found]


def _sizes(offers: Sequence[SiteOffer]) -> list[int]:
    return [each.processors for each in offers]


Row = tuple[list[float], float, float]  # a constraint: coefficients, lower and upper bound


def minimise(
    objective: Sequence[float], rows: Sequence[Row], most: Sequence[float], whole: Sequence[bool]
) -> list[float] | None:
    """Variables from 0 to `most`, whole numbers where it says so, by HiGHS; None: no values keep all rows."""
    if not objective:
        return None
    matrix, low, high = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    found = milp(
        np.array(objective, dtype=float),
        constraints=LinearConstraint(matrix, low, high),
        integrality=np.array(whole, dtype=int),
        bounds=Bounds(0.0, np.array(most, dtype=float)),
        options={"mip_rel_gap": GAP, "node_limit": NODES, "time_limit": SECONDS},
    )
    if found.x is None:
        return None
    return [
        float(round(x)) if integer else max(0.0, float(x)) for x, integer in zip(found.x, whole, strict=True)
    ]
