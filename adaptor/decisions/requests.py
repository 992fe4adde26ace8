"""Shapes of requests at a site: for a demand, as the scheduler rounds them, the smallest useful one."""

from __future__ import annotations

from collections.abc import Mapping

from adaptor.budget.accounting.statements import Statements
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.places import queue_in, rules_in
from adaptor.crafting.placing import placeable, width
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.crafting.unit import unit_of
from adaptor.decisions.snapshot import PilotFacts, SiteFacts
from adaptor.model import QueueState, Request
from adaptor.resources import TaskSize
from adaptor.scheduling.facts import BagFacts
from adaptor.units import round_up


def billed(rules: SiteRules, request: Request) -> Request:
    """The request as the scheduler takes it, with tr in its resolution."""
    return Request(request.p, round_up(request.tr, rules.time_resolution))


def shape_of(site: SiteFacts, demand: Demand, partition: str = "") -> RequestShape:
    """How requests for these tasks are shaped in a partition of a site; empty: the site has only one."""
    queue = site.queue and queue_in(site.queue, partition)
    return RequestShape.for_demand(rules_in(site.rules, partition), queue, demand)


def smallest(shape: RequestShape, demand: Demand) -> Request:
    """The smallest useful request: the processors of one task, or of a node, for the shortest task."""
    rules = shape.rules
    needed = round_up(demand.shortest + rules.pad, rules.time_resolution)
    return Request(shape.unit.processors, min(needed, round_up(rules.limits.max_tr, rules.time_resolution)))


def gpus_per_processor(rules: SiteRules, queue: QueueState | None, task: TaskSize) -> float:
    """GPUs that a request for such tasks asks for, for each of its processors."""
    if not task.gpus:
        return 0.0
    unit = unit_of(rules, queue, task)
    return task.nodes * task.gpus_for(unit.tasks) / unit.processors


def tariff_for(ledger: Statements, site: SiteFacts, task: TaskSize) -> Tariff:
    """The prices of a site for requests of such tasks. Raises BudgetError: it has none."""
    return ledger.tariff(site.name).with_gpus(gpus_per_processor(site.rules, site.queue, task))


def known_shortest(site: SiteFacts, bag: BagFacts, demand: Demand) -> float:
    """Estimated seconds of the shortest waiting task; 0 while nothing is known of the bag there."""
    known = bag.learned[site.name].learned
    return demand.shortest if known.finished or known.cut else 0.0


def sites_of(bag: BagFacts, sites: Mapping[str, SiteFacts]) -> list[SiteFacts]:
    """The sites at which the bag may run."""
    return [site for site in sites.values() if bag.spec.allows(site.name)]


def slots_of(site: SiteFacts, pilot: PilotFacts, bag: BagFacts) -> int:
    """Tasks of a bag that a pilot can run at the same time."""
    return unit_of(site.rules, site.queue, bag.spec.task).slots(pilot.request.p)


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


def most_slots(site: SiteFacts, task: TaskSize) -> int:
    """Tasks of this size that the site can run at the same time, within its limits."""
    limits = site.rules.limits
    allowed = limits.max_pending_requests * limits.max_proc
    there = placeable(site.queue, task) if site.queue else limits.max_proc
    return min(allowed, there) // width(site.queue, task)
