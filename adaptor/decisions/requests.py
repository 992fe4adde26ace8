"""Shapes of requests at a site: for a demand, as the scheduler rounds them, the smallest useful one."""

from __future__ import annotations

from adaptor.crafting.shape import RequestShape, task_slots
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.decisions.snapshot import PilotFacts, SiteFacts
from adaptor.model import Request
from adaptor.scheduling.facts import BagFacts
from adaptor.units import round_up


def billed(rules: SiteRules, request: Request) -> Request:
    """The request as the scheduler takes it, with tr in its resolution."""
    return Request(request.p, round_up(request.tr, rules.time_resolution))


def shape_of(site: SiteFacts, demand: Demand) -> RequestShape:
    """How requests for these tasks are shaped at a site."""
    return RequestShape.for_demand(site.rules, site.queue, demand)


def smallest(shape: RequestShape, demand: Demand) -> Request:
    """The smallest useful request: the processors of one task, or of a node, for the shortest task."""
    rules = shape.rules
    needed = round_up(demand.shortest + rules.pad, rules.time_resolution)
    return Request(shape.unit, min(needed, round_up(rules.limits.max_tr, rules.time_resolution)))


def known_shortest(site: SiteFacts, bag: BagFacts, demand: Demand) -> float:
    """Estimated seconds of the shortest waiting task; 0 while nothing is known of the bag there."""
    known = bag.learned[site.name].learned
    return demand.shortest if known.finished or known.cut else 0.0


def slots_of(site: SiteFacts, pilot: PilotFacts, bag: BagFacts) -> int:
    """Tasks of a bag that a pilot can run at the same time."""
    return task_slots(pilot.request.p, bag.spec.cpus, site.rules.granularity)


def staying(site: SiteFacts, bag: BagFacts) -> list[tuple[PilotFacts, int]]:
    """A bag's own pilots at a site, but those that are leaving, with their slots."""
    return [
        (pilot, slots_of(site, pilot, bag))
        for pilot in site.pilots
        if pilot.bag == bag.id and not pilot.leaving
    ]


def slots_there(site: SiteFacts, bag: BagFacts) -> int:
    """The slots of a bag's own pilots at a site, queued and running."""
    return sum(slots for _, slots in staying(site, bag))


def most_slots(site: SiteFacts, cpus: int) -> int:
    """Tasks of `cpus` processors that the site can run at the same time, within its limits."""
    limits = site.rules.limits
    allowed = limits.max_pending_requests * limits.max_proc
    there = site.queue.processors if site.queue else limits.max_proc
    return min(allowed, there) // cpus
