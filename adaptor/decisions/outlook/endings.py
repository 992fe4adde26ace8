"""When each unfinished bag will be done: made in the steps of the sites, a few bags at a time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

import msgspec

from adaptor.budget.estimation.estimate import Estimate
from adaptor.budget.estimation.forecast_record import FirstForecast
from adaptor.decisions.actions import KeepForecast, TellEnd
from adaptor.decisions.outlook.knowledge import KnownBag
from adaptor.decisions.outlook.known import known_bag
from adaptor.decisions.outlook.outlook import outlook
from adaptor.decisions.snapshot import BagAhead, SiteFacts, Snapshot
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.facts import facts_of
from adaptor.scheduling.state import SchedulingState

INTERVAL = 10.0
"""Seconds after which the end of a bag is forecast anew."""
SOON = 2.0
"""The same where twice as many tasks have finished, which can change it by far."""
MOST = 3
"""Bags whose ends are forecast in one step: each takes about 50 ms."""
OLD = 300.0
"""Seconds after which a forecast is too old to be shown."""


class ToldEnd(msgspec.Struct, frozen=True):
    """The last forecast of the end of a bag."""

    at: float
    """When it was made, epoch seconds."""
    end: Estimate | None
    """None: no end can be seen."""
    finished: int = 0
    """Tasks that had finished by then."""


def bags_ahead(state: SchedulingState, told: Mapping[int, ToldEnd], now: float) -> tuple[BagAhead, ...]:
    """The unfinished bags whose ends are to be forecast now: the oldest forecasts first."""
    due = [bag for bag in state.bags.values() if not bag.ended and _is_due(bag, told.get(bag.id), now)]
    due.sort(key=lambda bag: told[bag.id].at if bag.id in told else -math.inf)
    return tuple(_ahead(state, bag) for bag in due[:MOST])


def _is_due(bag: Bag, told: ToldEnd | None, now: float) -> bool:
    if told is None:
        return True
    finished = bag.count(TaskState.DONE)
    soon = finished >= 2 * told.finished and finished > told.finished
    return not 0 <= now - told.at < (SOON if soon else INTERVAL)


def _ahead(state: SchedulingState, bag: Bag) -> BagAhead:
    alone = bag.id in state.alone
    beside = [
        other.count(TaskState.WAITING)
        for other in state.bags.values()
        if not alone and other is not bag and other.id not in state.alone and _meet(state, bag, other)
    ]
    return BagAhead(facts_of(state, bag), alone, tuple(each for each in beside if each))


def _meet(state: SchedulingState, bag: Bag, other: Bag) -> bool:
    """Whether two bags may run at the same site."""
    return any(bag.spec.allows(site) and other.spec.allows(site) for site in state.sites)


def ends_ahead(snapshot: Snapshot) -> list[TellEnd | KeepForecast]:
    """The forecasts of ends that are due, and the first ones of bags that do not pay."""
    found: list[TellEnd | KeepForecast] = []
    for each in snapshot.ahead:
        end = end_of(each, snapshot.sites, snapshot.now)
        bag = each.facts
        found.append(TellEnd(bag.id, snapshot.now, end, bag.finished))
        if end is None or math.isinf(end.high) or each.alone or bag.id in snapshot.forecast_kept:
            continue
        first = FirstForecast(made=snapshot.now, finished=bag.finished, tasks=bag.tasks, cost=None, end=end)
        found.append(KeepForecast(bag.id, first))
    return found


def end_of(ahead: BagAhead, sites: Mapping[str, SiteFacts], now: float) -> Estimate | None:
    """The end of a bag by what is known now; None: nothing is known of where it may run, or none is seen."""
    return outlook_of(known_of(ahead, sites, now))


def known_of(ahead: BagAhead, sites: Mapping[str, SiteFacts], now: float) -> KnownBag:
    """What the forecast of its end is made from."""
    allowed = [site for site in sites.values() if ahead.facts.spec.allows(site.name)]
    return known_bag(ahead.facts, allowed, now, alone=ahead.alone, beside=ahead.beside)


def outlook_of(known: KnownBag) -> Estimate | None:
    if not any(site.queue is not None or site.pilots for site in known.sites):
        return None
    return outlook(known)


def still_told(told: Mapping[int, ToldEnd], bags: Set[int]) -> dict[int, ToldEnd]:
    """Without what was told of bags that have ended."""
    return {bag: each for bag, each in told.items() if bag in bags}
