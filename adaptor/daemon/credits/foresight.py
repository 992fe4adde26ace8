"""What a bag with pilots of its own will cost and when it will end, by what is known now."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor.budget.accounting.credits import MILLION, in_credits
from adaptor.budget.estimation.forecast import BagKnowledge, Forecast, forecast, worth_telling
from adaptor.crafting.shape import task_slots
from adaptor.daemon.credits.treasury import DONATED, EXPLICIT
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.viewing import rules_of
from adaptor.model import PilotState, TaskState
from adaptor.scheduling.bag import Bag

_SAMPLE = 1000
"""Runtimes that a forecast looks at, at most; they lie evenly among all."""


def tasks_of(bag: Bag) -> int:
    """Tasks that have a result or may still have one."""
    return bag.total - bag.count(TaskState.FAILED) - bag.count(TaskState.CANCELLED)


def sites_of(site: SiteState, bag: Bag) -> list[SiteState]:
    """All at which the bag may run, this one and its peers."""
    known = [site] if site.peers is None else list(site.peers.sites.values())
    return [each for each in known if bag.spec.allows(each.name)]


def pilots_of(sites: Sequence[SiteState], bag: Bag) -> list[tuple[SiteState, Pilot]]:
    """The pilots of its own that a bag has in the system, with their sites."""
    return [(each, pilot) for each in sites for pilot in each.pilots.values() if pilot.bag == bag.id]


def slots_of(site: SiteState, pilot: Pilot, bag: Bag) -> int:
    """Tasks of a bag that a pilot can run at the same time."""
    return task_slots(pilot.request.p, bag.spec.cpus, rules_of(site).granularity)


def staying(site: SiteState, bag: Bag) -> list[tuple[Pilot, int]]:
    """A bag's own pilots at a site that are to stay, queued and running, with their slots."""
    return [
        (pilot, slots_of(site, pilot, bag)) for _, pilot in pilots_of([site], bag) if not pilot.cancel_reason
    ]


def slots_there(site: SiteState, bag: Bag) -> int:
    """The slots of a bag's own pilots at a site, queued and running."""
    return sum(slots for _, slots in staying(site, bag))


def look_ahead(site: SiteState, bag: Bag, now: float) -> Forecast | None:
    """None where too little is known yet. `site` is any at which the bag may run. Raises JournalError."""
    finished = bag.count(TaskState.DONE)
    if not worth_telling(finished, tasks_of(bag)):
        return None
    sites = sites_of(site, bag)
    running = [max(0.0, now - start) for start in site.core.broker.starts(bag.id)]
    every = -(-finished // _SAMPLE)
    runtimes = site.core.journal.runtimes(bag.id, every)
    if len(runtimes) < 2 or not sites:
        return None
    pilots = pilots_of(sites, bag)
    tariffs = [site.core.treasury.ledger.tariff(each.name) for each in sites]
    kind = DONATED if bag.spec.allocation == "transparent" else EXPLICIT
    price, unit = min((tariff.price(kind), tariff.charging_unit) for tariff in tariffs)
    return forecast(
        BagKnowledge(
            now=now,
            tasks=tasks_of(bag),
            finished=runtimes,
            every=every,
            running=running,
            waiting=max(0, tasks_of(bag) - finished - len(running)),
            slots=sum(slots_of(at, pilot, bag) for at, pilot in pilots),
            starts=_first_start(pilots, now),
            charged=charged(site, bag, pilots, now),
            paid=_paid_ahead(site, bag, pilots, now),
            rate=bag.spec.cpus * price / MILLION / 3600,
            unit=float(unit),
            startup=max(each.pad for each in sites),
        )
    )


def _first_start(pilots: Sequence[tuple[SiteState, Pilot]], now: float) -> float:
    starts = (pilot.started or pilot.predicted_start or now for _, pilot in pilots)
    return min(starts, default=math.inf)


def _paid_ahead(site: SiteState, bag: Bag, pilots: Sequence[tuple[SiteState, Pilot]], now: float) -> float:
    """Seconds of slots that are still to come in the charging units that have begun."""
    total = 0.0
    for at, pilot in pilots:
        reserved = site.core.treasury.ledger.open_pilots.get(pilot.id)
        if reserved is not None and pilot.state is PilotState.RUNNING and pilot.started is not None:
            elapsed = now - pilot.started
            until = min(reserved.tariff.charged_seconds(elapsed), pilot.granted)
            total += slots_of(at, pilot, bag) * max(0.0, until - elapsed)
    return total


def charged(site: SiteState, bag: Bag, pilots: Sequence[tuple[SiteState, Pilot]], now: float) -> float:
    """Credits for what has ended, and for what runs as if it ended now."""
    ledger = site.core.treasury.ledger
    total = ledger.of_bag(bag.id).used
    for _, pilot in pilots:
        reserved = ledger.open_pilots.get(pilot.id)
        if reserved is not None and pilot.state is PilotState.RUNNING and pilot.started is not None:
            total += reserved.tariff.charge(reserved.kind, reserved.p, now - pilot.started)
    return in_credits(total)
