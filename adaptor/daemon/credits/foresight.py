"""What a bag with pilots of its own will cost and when it will end, by what is known now."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.budget.estimation.bag_knowledge import (
    BagTasks,
    PilotKnowledge,
    bag_knowledge,
    charged_so_far,
    sample_step,
)
from adaptor.budget.estimation.forecast import Forecast, forecast, worth_telling
from adaptor.crafting.shape import task_slots
from adaptor.daemon.credits.treasury import DONATED, EXPLICIT
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.viewing import rules_of
from adaptor.model import PilotState, TaskState
from adaptor.scheduling.bag import Bag


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
    runtimes = site.core.journal.runtimes(bag.id, sample_step(finished))
    if len(runtimes) < 2 or not sites:
        return None
    pilots = pilots_of(sites, bag)
    ledger = site.core.treasury.ledger
    return forecast(
        bag_knowledge(
            BagTasks(
                total=tasks_of(bag),
                done=finished,
                runtimes=runtimes,
                started=site.core.broker.starts(bag.id),
                processors=bag.spec.cpus,
            ),
            [_known(at, pilot, bag) for at, pilot in pilots],
            used=ledger.of_bag(bag.id).used,
            tariffs=[ledger.tariff(each.name) for each in sites],
            kind=DONATED if bag.spec.allocation == "transparent" else EXPLICIT,
            startup=max(each.pad for each in sites),
            now=now,
        )
    )


def _known(site: SiteState, pilot: Pilot, bag: Bag) -> PilotKnowledge:
    return PilotKnowledge(
        slots=slots_of(site, pilot, bag),
        started=pilot.started if pilot.state is PilotState.RUNNING else None,
        predicted_start=pilot.predicted_start,
        granted=pilot.granted,
        reserved=site.core.treasury.ledger.open_pilots.get(pilot.id),
    )


def charged(site: SiteState, bag: Bag, pilots: Sequence[tuple[SiteState, Pilot]], now: float) -> float:
    """Credits for what has ended, and for what runs as if it ended now."""
    used = site.core.treasury.ledger.of_bag(bag.id).used
    return charged_so_far(used, [_known(at, pilot, bag) for at, pilot in pilots], now)
