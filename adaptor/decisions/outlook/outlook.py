"""When a bag will be done, with an interval. Pure: the draws come from a generator of its own.

The same for all bags, from the first second to the last: `DRAWS` possible courses of the bag, each with a
distribution of runtimes that agrees with what is known (`possible_runtimes`), on futures of the queues
(`places`). 90 % of their ends are the interval.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from adaptor.budget.estimation.estimate import Estimate, estimate
from adaptor.crafting.fits import placeable, width
from adaptor.crafting.futures.drawn_queue import planned
from adaptor.decisions.outlook.course import Work, end_of
from adaptor.decisions.outlook.knowledge import KnownBag, KnownSite
from adaptor.decisions.outlook.places import CraftBudget, Places, Site
from adaptor.runtimes.possible import RuntimeCases

DRAWS = 60
BEYOND, BEYOND_WAITING = 1.3, 0.3
"""By which factor the interval reaches further than the courses, for what these leave out: tasks of which
nothing is seen yet; and how much more if all tasks wait: requests that are withdrawn, local jobs that come
later. Measured on the queues of traces (docs/forecasts.md)."""
_FUTURES = 8
"""Futures of the queues that are drawn, at most."""
_JOBS = 2000
"""Jobs in all futures together, about: more would take too long."""
_CRAFTS = 40
"""How often requests are crafted beyond the first time in each future."""


def outlook(known: KnownBag) -> Estimate | None:
    """The end of the bag (epoch seconds); None where no end can be seen in half of the courses.

    Where no end is seen in a few courses, the high end of the interval is infinite.
    """
    if not known.waiting and not known.running:
        return Estimate(known.now, known.now, known.now)
    draw = random.Random(1)  # noqa: S311
    cases = RuntimeCases(known.runtimes, draw)
    runtimes = sorted((cases.next() for _ in range(DRAWS)), key=lambda each: each.mean)
    futures = _futures_for(known.sites)
    budget = CraftBudget(_CRAFTS)
    plans = [planned(site.queue) if site.queue is not None else None for site in known.sites]
    ends = []
    for number in range(futures):
        sites = [
            Site(site, plan, known.now, draw, steady=number % 2 == 0)
            for site, plan in zip(known.sites, plans, strict=True)
        ]
        places = Places(sites, budget)
        # Neighbours among the sorted cases share a future: its requests are crafted for such runtimes.
        block = runtimes[number * DRAWS // futures : (number + 1) * DRAWS // futures]
        block.sort(key=lambda each: abs(each.mean - block[len(block) // 2].mean) if block else 0.0)
        ends += [end_of(_work(known), places.again(), each, places) for each in block]
    found = estimate(ends)
    return None if math.isinf(found.value) else _wider(found, known)


def _wider(found: Estimate, known: KnownBag) -> Estimate:
    """Further out by the factor, and by a look at the queue, in which nothing is seen."""
    now, look = known.now, max((site.poll for site in known.sites), default=0.0)
    further = BEYOND + BEYOND_WAITING * known.waiting / max(1, known.waiting + known.running)
    low = max(now, now + (found.low - now) / further - look)
    return Estimate(min(low, found.value), found.value, now + (found.high - now) * further + look)


def _futures_for(sites: Sequence[KnownSite]) -> int:
    jobs = 1
    for site in sites:
        if site.queue is not None:
            jobs += len(site.queue.running) + len(site.queue.pending)
    return max(4, min(_FUTURES, _JOBS // jobs))


def _work(known: KnownBag) -> Work:
    possible = max((site.rules.longest_task for site in known.sites), default=math.inf)
    slots = sum(pilot.slots for site in known.sites for pilot in site.pilots)
    most = max(slots, sum(_most_slots(site) for site in known.sites))
    if known.at_once is not None:
        most = min(most, known.at_once)
    return Work(
        now=known.now,
        waiting=known.waiting - len(known.again),
        again=known.again,
        beside=float(sum(min(each, known.waiting) for each in known.beside)),
        needed=max((site.needed for site in known.sites), default=1.0),
        longest=known.longest,
        possible=possible,
        most=max(1, min(most, known.waiting + known.running)),
        at_once=known.at_once,
    )


def _most_slots(site: KnownSite) -> int:
    limits = site.rules.limits
    processors = placeable(site.queue, site.task) if site.queue is not None else limits.max_proc
    asked = min(processors, limits.max_pending_requests * limits.max_proc)
    return asked // max(1, width(site.queue, site.task))
