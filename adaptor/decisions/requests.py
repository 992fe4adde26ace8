"""Requests at a site: their shapes, the slots of pilots, and until when their time is paid."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.accounting.tariffs import HOUR, Tariff
from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.pacing import terms_for
from adaptor.budget.provisioning.within_budget import Purse
from adaptor.crafting import fits
from adaptor.crafting.fits import RequestShape, unit_of, width
from adaptor.crafting.situation import Demand, Largest, SiteRules
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.snapshot import SiteFacts
from adaptor.forecast.bag_facts import BagFacts
from adaptor.model import PriceKind, QueueState, Request
from adaptor.reports import Remedy
from adaptor.resources import PerProcessor, TaskSize
from adaptor.units import round_up


def billed(rules: SiteRules, request: Request) -> Request:
    """The request as the scheduler takes it, with tr in its resolution."""
    return request.lasting(round_up(request.tr, rules.time_resolution))


def paid_in_parts(spec: BagSpec) -> bool:
    """Whether the budget of a bag pays for its formal requests in parts, while they run. With a signal they
    are paid for whole: it would come too early."""
    return not spec.paced and spec.signal is None


def shape_of(site: SiteFacts, demand: Demand, partition: str = "") -> RequestShape:
    """The shape of requests for these tasks in a partition of a site; empty: the site has only one."""
    queue = site.queue and site.queue.in_partition(partition)
    return RequestShape.for_demand(site.rules.in_partition(partition), queue, demand)


def smallest(shape: RequestShape, demand: Demand) -> Request:
    """The smallest useful request: the processors of one task, or of a node, for the shortest task."""
    rules = shape.rules
    needed = round_up(demand.shortest + rules.pad, rules.time_resolution)
    return Request(shape.unit.processors, min(needed, round_up(rules.limits.max_tr, rules.time_resolution)))


def smallest_to_try(shape: RequestShape, demand: Demand) -> Request:
    """The smallest request worth a try where larger ones fail; while nothing is known of the runtimes, tasks
    may be far shorter than they are taken to be."""
    least, rules = smallest(shape, demand), shape.rules
    if demand.times.known or demand.times.not_enough:
        return least
    return Request(least.p, min(least.tr, round_up(rules.pad + 1, rules.time_resolution)))


def is_least(request: Request, least: Request, remedy: Remedy) -> bool:
    """Whether no smaller request is of any use, in what was too much."""
    narrow, short = request.p <= least.p, request.tr <= least.tr
    if remedy is Remedy.SMALLER:
        return narrow and short
    return {Remedy.NARROWER: narrow, Remedy.SHORTER: short}.get(remedy, True)


def largest_by_trial(site: SiteFacts, demand: Demand) -> dict[str, Largest]:
    """Largest request to make now in each partition where larger ones for such tasks have failed."""
    if not site.tried:
        return {}
    found = {}
    for name in site.rules.limits.partitions or [""]:
        tried = site.tried.get((demand.task, name))
        if tried is not None and tried.failures:
            shape = shape_of(site, demand, name)
            limits, resolution = shape.rules.limits, shape.rules.time_resolution
            most = Request(shape.fit(limits.max_proc), round_up(limits.max_tr, resolution))
            least = smallest_to_try(shape, demand)
            largest = tried.largest(most, least, shape.unit.processors, resolution)
            if largest.why:
                found[name] = largest
    return found


def one_trial_at_a_time(site: SiteFacts, demand: Demand) -> Demand:
    """The demand with no request larger than those that failed allow; while none of that size has started,
    with one at a time, as equal ones would fail together."""
    largest = largest_by_trial(site, demand)
    if not largest:
        return demand
    demand = msgspec.structs.replace(demand, largest=tuple(largest.items()))
    untried = {name: each for name, each in largest.items() if not each.worked}
    for pilot in site.requests:
        trial = untried.get(pilot.partition)
        same = pilot.shape is not None and pilot.shape[0] == demand.task
        if trial is not None and same and pilot.started is None and not pilot.leaving:
            why = f"pilot {pilot.id} shows first whether such a request starts: {trial.why}"
            return demand.withhold(why)
    if untried and len(untried) == max(1, len(site.rules.limits.partitions)):
        most = max(each.p for each in untried.values())
        return demand.at_most(most, f"no larger one: {next(iter(untried.values())).why}")
    return demand


def per_processor(rules: SiteRules, queue: QueueState | None, task: TaskSize) -> PerProcessor:
    """Resources that a request for such tasks may hold with each processor that it asks for."""
    unit = unit_of(rules, queue, task)
    gpus = task.nodes * task.gpus_for(unit.tasks) / unit.processors if task.gpus else 0.0
    return PerProcessor(gpus, rules.held_each)


def tariff_for(ledger: Statements, site: SiteFacts, task: TaskSize) -> Tariff:
    """The prices of a site for requests of such tasks. Raises BudgetError: it has none."""
    return ledger.tariff(site.name).of_pilots(per_processor(site.rules, site.queue, task))


def left_at(ledger: Statements, site: str, now: float) -> float:
    """Millionths of a credit that the budgets of a site leave; infinite: it has none."""
    return min((budget.left for budget in ledger.budgets_at(site, now)), default=math.inf)


def least_cost(ledger: Statements, site: SiteFacts, demand: Demand) -> int:
    """Millionths of a credit that are set aside for the smallest request. Raises BudgetError: no price."""
    least = smallest(shape_of(site, demand), demand)
    return tariff_for(ledger, site, demand.task).reservation("explicit", least.p, least.tr)


def known_shortest(site: SiteFacts, bag: BagFacts, demand: Demand) -> float:
    """Estimated seconds of the shortest waiting task; 0 while nothing is known of the bag there."""
    return demand.shortest if bag.learned[site.name].knows else 0.0


def sites_of(bag: BagFacts, sites: Mapping[str, SiteFacts]) -> list[SiteFacts]:
    """The sites at which the bag may run."""
    return [site for site in sites.values() if bag.spec.allows(site.name)]


def slots_of(site: SiteFacts, pilot: Pilot, bag: BagFacts) -> int:
    """Tasks of a bag that a pilot can run at the same time."""
    return unit_of(site.rules, site.queue, bag.spec.task).slots(pilot.request.p)


def staying(site: SiteFacts, bag: BagFacts) -> list[tuple[Pilot, int]]:
    """A bag's own pilots at a site, but those that are leaving, with their slots."""
    return [
        (pilot, slots_of(site, pilot, bag))
        for pilot in site.pilots
        if pilot.bag == bag.id and not pilot.leaving
    ]


def most_slots(site: SiteFacts, task: TaskSize) -> int:
    """Tasks of this size that the site can run at the same time, within its limits."""
    return fits.most_slots(site.rules, site.queue, task)


def host_terms(ledger: Statements, site: SiteFacts) -> HostTerms:
    return terms_for(ledger.tariff(site.name).charging_unit, site.rules.pad)


def charges_whole_units(ledger: Statements, site: SiteFacts) -> bool:
    """Whether time is charged in units that are long compared with the start-up of a pilot.

    Where they are shorter, to go on costs less than to start another pilot, and none ends for their sake.
    """
    return ledger.tariff(site.name).charging_unit >= host_terms(ledger, site).unit


def ends_with_units(bag: BagFacts, ledger: Statements, site: SiteFacts) -> bool:
    """Whether the pilots of a bag end with a charging unit unless there is a reason to go on."""
    return bag.spec.paced and charges_whole_units(ledger, site)


def purse_of(
    ledger: Statements, site: SiteFacts, bag: BagFacts, kind: PriceKind = "explicit"
) -> Purse | None:
    """Seconds of a host that the budget of a bag pays for here; None: the bag has no budget."""
    balance = ledger.budget_of(bag.id)
    if balance is None:
        return None
    tariff = tariff_for(ledger, site, bag.spec.task)
    each = tariff.price(kind) * width(site.queue, bag.spec.task) / HOUR
    return Purse(max(0, balance.left) / each, balance.reserved / each)


def end_takes(site: SiteFacts) -> float:
    """Seconds before the end of a unit in which it is decided, at one look or another, and a pilot ends."""
    return site.poll + site.rules.pad


def pilot_start(pilot: Pilot, now: float) -> float:
    """Epoch seconds of the pilot's start, or of its earliest possible start."""
    return max(now, pilot.predicted_start or now) if pilot.started is None else pilot.started


def expected_end(bag: BagFacts, ledger: Statements, site: SiteFacts, pilot: Pilot, now: float) -> float:
    """Epoch seconds at which a pilot ends unless there is a reason to go on."""
    with_unit = ends_with_units(bag, ledger, site) and bag.spec.deadline is None  # a reason to go on
    ends = unit_end(ledger, site, pilot, now) if with_unit else None
    return pilot_start(pilot, now) + pilot.granted if ends is None else ends


def unit_end(ledger: Statements, site: SiteFacts, pilot: Pilot, now: float) -> float | None:
    """Epoch seconds at which a pilot has to end to be charged for no further unit.

    None: its request ends with the unit that is paid.
    """
    start = pilot_start(pilot, now)
    ends = host_terms(ledger, site).paid_until(start, pilot.granted, now)
    return None if ends >= start + pilot.granted else max(now, ends - end_takes(site))
