"""What a bag with pilots of its own will cost and when it will end, by what is known now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.statements import Statements
from adaptor.budget.estimation.bag_knowledge import (
    BagKnowledge,
    BagTasks,
    PilotKnowledge,
    bag_knowledge,
    charged_so_far,
)
from adaptor.budget.estimation.estimate import Estimate
from adaptor.budget.estimation.forecast import Forecast, forecast, worth_telling
from adaptor.budget.estimation.forecast_record import FirstForecast
from adaptor.decisions.actions import KeepForecast
from adaptor.decisions.memory import MadeForecast, Memory
from adaptor.decisions.requests import expected_end, most_slots, pilot_start, slots_of, tariff_for
from adaptor.decisions.snapshot import PilotFacts, SiteFacts, Snapshot
from adaptor.model import PilotState
from adaptor.scheduling.facts import BagFacts

INTERVAL = 10.0
"""Seconds after which the forecast of a bag is made anew: it takes up to 25 ms."""
SPACING = 0.2
"""Seconds between two forecasts, of any bag, while older ones can still be shown."""
OLD = 60.0
"""Seconds after which a forecast is too old to be shown."""

Placed = Sequence[tuple[SiteFacts, PilotFacts]]
"""Pilots with their sites."""


def forecast_of(
    memory: Memory, bag: BagFacts, sites: Mapping[str, SiteFacts], ledger: Statements, now: float
) -> tuple[Forecast | None, Memory]:
    """The forecast of a bag, made anew where that is due; None: too little is known yet."""
    if (lately := made_lately(memory, bag.id, now)) is not None:
        return lately, memory
    found = look_ahead(bag, sites, ledger, now)
    if found is None:
        return None, memory
    forecasts = {**memory.forecasts, bag.id: MadeForecast(now, found, bag.finished, bag.tasks)}
    return found, msgspec.structs.replace(memory, forecasts=forecasts, forecast_at=now)


def first_forecasts(snapshot: Snapshot, memory: Memory) -> tuple[list[KeepForecast], Memory]:
    """The first complete forecasts of bags: each is what `adaptor status` shows at this time.

    Without a pilot in the system a forecast names no end, so none is made for this.
    """
    found = []
    for bag in snapshot.bags.values():
        if bag.id in snapshot.forecast_kept or not pilots_of(sites_of(bag, snapshot.sites), bag):
            continue
        ahead, memory = forecast_of(memory, bag, snapshot.sites, snapshot.ledger, snapshot.now)
        if ahead is not None and ahead.end is not None:
            found.append(KeepForecast(bag.id, _first(memory.forecasts[bag.id], ahead.cost, ahead.end)))
    return found, memory


def _first(made: MadeForecast, cost: Estimate, end: Estimate) -> FirstForecast:
    return FirstForecast(made=made.at, finished=made.finished, tasks=made.tasks, cost=cost, end=end)


def made_lately(memory: Memory, bag: int, now: float) -> Forecast | None:
    """The last forecast of a bag; None: there is none, or another one is due."""
    known = memory.forecasts.get(bag)
    return None if known is None or _is_due(memory, now, known.at) else known.forecast


def _is_due(memory: Memory, now: float, made: float) -> bool:
    if 0 <= now - memory.forecast_at < SPACING:
        return not 0 <= now - made < OLD
    return not 0 <= now - made < INTERVAL


def look_ahead(
    bag: BagFacts, sites: Mapping[str, SiteFacts], ledger: Statements, now: float
) -> Forecast | None:
    """The forecast of a bag; None where too little is known yet, or more tasks come."""
    known = None if bag.growing else knowledge_of(bag, sites, ledger, now)
    return None if known is None else forecast(known)


def knowledge_of(
    bag: BagFacts, sites: Mapping[str, SiteFacts], ledger: Statements, now: float
) -> BagKnowledge | None:
    """What is known of a bag, in the words of the forecast; None: too little."""
    allowed = sites_of(bag, sites)
    if not worth_telling(bag.finished, bag.tasks) or len(bag.runtimes) < 2 or not allowed:
        return None
    return bag_knowledge(
        BagTasks(
            total=bag.tasks,
            done=bag.finished,
            runtimes=bag.runtimes,
            every=bag.every,
            started=bag.starts,
            processors=bag.spec.task.total_processors,
        ),
        _pilots(pilots_of(allowed, bag), bag, ledger, now),
        used=ledger.of_bag(bag.id).used,
        tariffs=[tariff_for(ledger, each, bag.spec.task) for each in allowed],
        kind="donated" if bag.spec.allocation == "transparent" else "explicit",
        startup=max(each.rules.pad for each in allowed),
        most=sum(most_slots(each, bag.spec.task) for each in allowed),
        now=now,
    )


def sites_of(bag: BagFacts, sites: Mapping[str, SiteFacts]) -> list[SiteFacts]:
    """The sites at which the bag may run."""
    return [site for site in sites.values() if bag.spec.allows(site.name)]


def pilots_of(sites: Sequence[SiteFacts], bag: BagFacts) -> Placed:
    """The bag's own pilots in the system."""
    return [(site, pilot) for site in sites for pilot in site.pilots if pilot.bag == bag.id]


def charged(bag: BagFacts, pilots: Placed, ledger: Statements, now: float) -> float:
    """Credits for what has ended, and for what runs as if it ended now."""
    return charged_so_far(ledger.of_bag(bag.id).used, _pilots(pilots, bag, ledger, now), now)


def _pilots(pilots: Placed, bag: BagFacts, ledger: Statements, now: float) -> list[PilotKnowledge]:
    return [
        PilotKnowledge(
            slots=slots_of(site, pilot, bag),
            started=pilot.started if pilot.state is PilotState.RUNNING else None,
            predicted_start=pilot.predicted_start,
            granted=pilot.granted,
            expected=expected_end(bag, ledger, site, pilot, now) - pilot_start(pilot, now),
            reserved=ledger.open_pilots.get(pilot.id),
        )
        for site, pilot in pilots
    ]
