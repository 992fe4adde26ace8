"""Forecasts of the end and the cost of a bag, with intervals. Pure: the generator is its own.

The same for all bags, from the first second to the last: `DRAWS` possible courses of the bag, each with a
distribution of runtimes that agrees with what is known (`runtimes.possible`), on futures of the queues
(`site_future`). 90 % of their costs are the interval of the cost; their ends are calibrated by the outcomes
of earlier forecasts (`calibration`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.tariffs import HOUR
from adaptor.crafting.fits import most_slots, width
from adaptor.crafting.futures.drawn_queue import all_ended, ended_by, planned
from adaptor.forecast.bag_simulation import CourseResult, Work, course_result
from adaptor.forecast.calibration import Raw, calibrated, kind_of_end
from adaptor.forecast.estimate import estimate
from adaptor.forecast.known import KnownBag, KnownSite
from adaptor.forecast.site_future import SiteFuture, SitesFuture
from adaptor.model import Estimate, QueueState
from adaptor.runtimes.possible import RuntimeCases, Runtimes

DRAWS = 60
_FUTURES = 8  # futures of the queues that are drawn, at most
_JOBS = 2000  # jobs in all futures together, about: more would take too long
_CRAFTS = 40  # craftings of requests beyond the first time in each future
_LOOKED_AT = 50  # running tasks whose rest is drawn one by one, at most
_UNSEEN = CourseResult(math.inf, math.inf)
FIRST = 30  # finished tasks before the cost of a bag is worth its name


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of a bag, with an interval in which each figure lies with probability 0.9."""

    end: Estimate | None
    """Epoch seconds; None: no end is seen in half of the courses, or nothing is known of where the bag may
    run. Where none is seen in a few, the high end is infinite."""
    cost: Estimate | None = None
    """Credits in the end, those charged already included; None: the bag shares its pilots with others."""
    work: Estimate
    """Seconds of a slot that the tasks without a result still need."""
    charged: float = 0.0
    """Credits for its pilots until now, as if all ended now."""
    least: float = 0.0
    """Credits for the least of this work, where nothing more is wasted."""
    raw: Raw | None = None
    """The interval from which the end was calibrated; None: there is none, or the bag has ended."""
    blind: bool = False
    """Whether too little is known of the bag's tasks to plan by its end (`KnownBag.blind`)."""


def worth_telling(finished: int, tasks: int) -> bool:
    """Whether enough tasks have finished to name a cost: 30, fewer in a small bag."""
    return finished >= max(2, min(FIRST, tasks // 4))


def forecast(known: KnownBag) -> Forecast:
    """The forecast of a bag."""
    bag = known.bag
    charged = in_credits(known.used + sum(_charged(site, known.now) for site in known.sites))
    if not bag.not_started and not bag.known.running:
        now, cost = (Estimate(figure, figure, figure) for figure in (known.now, charged))
        return Forecast(
            end=now, cost=cost if bag.alone else None, work=Estimate(0, 0, 0), charged=charged, least=charged
        )
    draw = random.Random(1)  # noqa: S311
    cases = RuntimeCases(known.runtimes, draw)
    runtimes = sorted((cases.next() for _ in range(DRAWS)), key=lambda case: case.mean)
    courses = [_UNSEEN]
    if any(site.view.queue is not None or site.pilots for site in known.sites):
        courses = _courses(known, runtimes, draw)
    # The end as it was simulated; times below a look at the queue are nearly nothing.
    alone = not any(_has_others(site) for site in known.sites)
    raw = Raw(
        kind=kind_of_end(
            bag.finished, bag.finished + bag.known.running + bag.not_started, alone=alone, pays=bag.alone
        ),
        made=known.now,
        unit=max([1.0, *(site.view.poll for site in known.sites)]),
        ends=estimate(course.end for course in courses),
    )
    unseen = math.isinf(raw.ends.value)
    work = estimate(_work_left(known, case) for case in runtimes)
    least = charged + _rate(known) * max(0.0, work.low - _paid(known))
    end = None if unseen else calibrated(raw, known.scores.get(raw.kind, ()))
    return Forecast(
        end=None if end is None else _possible(known, end, runtimes[len(runtimes) // 2], draw),
        raw=None if unseen else raw,
        cost=_cost(known, courses, work, charged, least) if bag.alone else None,
        work=work,
        charged=charged,
        least=least,
        blind=known.blind,
    )


def _possible(known: KnownBag, end: Estimate, middle: Runtimes, draw: random.Random) -> Estimate:
    """The interval of an end; where every pilot waits, from the first possible start to the planned end.

    Other jobs mostly end early, and pilots then start before their planned starts; but none has to. Any may
    end at once, but a reservation does not.
    """
    pilots = [pilot for site in known.sites for pilot in site.pilots]
    if not pilots or any(pilot.started is not None for pilot in pilots):
        return end
    own = {pilot.job for pilot in pilots}
    queues = [site.view.queue for site in known.sites]
    first = min(
        _undrawn(known, site, queue and all_ended(queue, own), draw).first_start()
        for site, queue in zip(known.sites, queues, strict=True)
    )
    last = [
        queue and ended_by(queue, {job: end.high for job, end in site.beside.items()})
        for site, queue in zip(known.sites, queues, strict=True)
    ]
    sites = [_undrawn(known, *each, draw) for each in zip(known.sites, last, strict=True)]
    future = SitesFuture(known, sites, iter(()))
    latest = course_result(_work(known), future.again(), middle, future).end
    high = end.high if math.isinf(latest) else max(end.high, latest)
    if math.isinf(first):
        return Estimate(end.low, end.value, high)
    return Estimate(max(end.low, first), max(end.value, first), max(high, first))


def _undrawn(known: KnownBag, site: KnownSite, queue: QueueState | None, draw: random.Random) -> SiteFuture:
    """The site if all jobs of a queue run to their limits."""
    plan = planned(queue) if queue is not None else None
    site = msgspec.structs.replace(site, view=msgspec.structs.replace(site.view, queue=queue))
    return SiteFuture(site, plan, known.bag, known.now, draw, steady=True, drawn=False)


def _courses(known: KnownBag, runtimes: Sequence[Runtimes], draw: random.Random) -> list[CourseResult]:
    queues = [site.view.queue for site in known.sites if site.view.queue is not None]
    jobs = 1 + sum(len(queue.running) + len(queue.pending) for queue in queues)
    count = max(4, min(_FUTURES, _JOBS // jobs))
    crafts = iter(range(_CRAFTS))
    plans = [planned(site.view.queue) if site.view.queue is not None else None for site in known.sites]
    found = []
    for number in range(count):
        future = SitesFuture(
            known,
            [
                SiteFuture(site, plan, known.bag, known.now, draw, steady=number % 2 == 0)
                for site, plan in zip(known.sites, plans, strict=True)
            ],
            crafts,
        )
        # Adjacent cases of the sorted ones share a future: its requests are crafted for such runtimes.
        block = list(runtimes[number * DRAWS // count : (number + 1) * DRAWS // count])
        middle = block[len(block) // 2].mean
        block.sort(key=lambda case: abs(case.mean - middle))
        found += [course_result(_work(known), future.again(), case, future) for case in block]
    return found


def _cost(
    known: KnownBag, courses: Sequence[CourseResult], work: Estimate, charged: float, least: float
) -> Estimate:
    """Credits in the end; for the work alone where no end is seen in some courses.

    Hosts are charged by units: the interval reaches one unit of a slot further.
    """
    found = estimate((known.used + course.cost) / 1e6 for course in courses)
    if math.isinf(found.high):
        rate = _rate(known)
        found = Estimate(*(charged + rate * seconds for seconds in (work.low, work.value, work.high)))
    unit = max((site.tariff.charging_unit for site in known.sites if site.tariff is not None), default=0)
    high = found.high + _rate(known) * unit
    return Estimate(max(least, found.low), max(least, found.value), max(least, high))


def _has_others(site: KnownSite) -> bool:
    """Whether jobs of others are in the queue."""
    if site.view.queue is None:
        return False
    jobs = {job.id for job in site.view.queue.running} | {job.id for job in site.view.queue.pending}
    return bool(jobs - site.own)


def _charged(site: KnownSite, now: float) -> int:
    """Millionths of a credit for the pilots that run at a site, as if they ended now."""
    return sum(
        pilot.tariff.charge(pilot.kind, pilot.p, now - pilot.started)
        for pilot in site.pilots
        if pilot.tariff is not None and pilot.started is not None
    )


def _rate(known: KnownBag) -> float:
    """Credits for a second of a slot where it is cheapest; 0: the bag does not pay."""
    spec = known.bag.spec
    prices = [
        in_credits(site.tariff.price(spec.price_kind)) * width(site.view.queue, spec.task) / HOUR
        for site in known.sites
        if site.tariff is not None
    ]
    return min(prices, default=0.0)


def _paid(known: KnownBag) -> float:
    """Seconds of slots that are charged already and still to come."""
    return sum(
        pilot.slots * (pilot.tariff.charged_seconds(ran) - ran)
        for site in known.sites
        for pilot in site.pilots
        if pilot.tariff is not None
        and pilot.started is not None
        and (ran := max(0.0, known.now - pilot.started)) < pilot.tr
    )


def _work_left(known: KnownBag, runtimes: Runtimes) -> float:
    running = [ran for site in known.sites for pilot in site.pilots for ran in pilot.elapsed]
    some = running[:: max(1, math.ceil(len(running) / _LOOKED_AT))]
    rest = math.fsum(runtimes.rest(ran) for ran in some)
    return known.bag.not_started * runtimes.mean + (rest * len(running) / len(some) if some else 0.0)


def _work(known: KnownBag) -> Work:
    bag = known.bag
    pilots = [pilot for site in known.sites for pilot in site.pilots]
    slots = sum(pilot.slots for pilot in pilots)
    most = max(
        sum(pilot.slots for pilot in pilots if pilot.started is not None),
        sum(most_slots(site.view.rules, site.view.queue, bag.spec.task) for site in known.sites),
    )
    beside = bag.others.served_before(bag.not_started, slots or max(1, most))
    if bag.spec.max_running is not None:
        most = min(most, bag.spec.max_running)
    return Work(
        now=known.now,
        waiting=bag.not_started - len(bag.again),
        again=bag.again,
        beside=beside,
        learners={site.view.name: site.learner.copy() for site in known.sites},
        seen=msgspec.structs.replace(bag.known),
        most=max(1, min(most, bag.not_started + bag.known.running)),
        at_once=bag.spec.max_running,
        idle_costs=bag.idle_costs,
    )
