"""The forecasts of all unfinished bags: made in the steps of the sites, a few bags at a time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

import msgspec

from adaptor.decisions.actions import KeepForecast
from adaptor.decisions.forecasting.known_bag import known_bag
from adaptor.decisions.memory import MadeForecast, MemoryDraft
from adaptor.decisions.snapshot import Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.calibration import Raw
from adaptor.forecast.forecast import Forecast, forecast, worth_telling
from adaptor.forecast.record import FirstForecast
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState

INTERVAL = 10.0  # seconds after which a bag is forecast again
SOON = 2.0  # the same where twice as many tasks have finished, which can change it by far
MOST = 3  # bags that are forecast in one step: each takes about 50 ms
OLD = 300.0  # seconds after which a forecast is too old to be shown


def bags_ahead(
    state: SchedulingState, made: Mapping[int, MadeForecast], now: float, kept: Set[int] | None = None
) -> list[Bag]:
    """The unfinished bags that are to be forecast now: the oldest forecasts first.

    Args:
        kept: bags whose first forecast is kept. If given, only those are forecast whose decisions depend on
        it, and those that pay whose first one is still to be kept.
    """
    due = [
        bag
        for bag in state.bags.values()
        if not bag.ended
        and (_is_due(bag, made.get(bag.id), now) or _has_a_cost_now(state, bag, made[bag.id]))
        and (
            kept is None
            or (
                bag.id in state.alone
                and (bag.spec.deadline is not None or (bag.id not in kept and _tells_cost(bag)))
            )
        )
    ]
    due.sort(key=lambda bag: made[bag.id].at if bag.id in made else -math.inf)
    return due[:MOST]


def _tells_cost(bag: Bag) -> bool:
    """Whether enough tasks have finished to name the cost."""
    return worth_telling(bag.count(TaskState.DONE), bag.total)


def _has_a_cost_now(state: SchedulingState, bag: Bag, made: MadeForecast) -> bool:
    """Whether enough tasks have finished since to name the cost: that forecast is the one that is judged."""
    unnamed = bag.id in state.alone and made.forecast.cost is None
    return unnamed and not bag.open and not bag.count(TaskState.BLOCKED) and _tells_cost(bag)


def _is_due(bag: Bag, made: MadeForecast | None, now: float) -> bool:
    if made is None:
        return True
    finished = bag.count(TaskState.DONE)
    soon = finished >= 2 * made.finished and finished > made.finished
    if soon and made.forecast.blind:
        return True
    return not 0 <= now - made.at < (SOON if soon else INTERVAL)


def make_forecasts(snapshot: Snapshot, draft: MemoryDraft) -> list[KeepForecast]:
    """Make the forecasts that are due: each is what users are shown from now on.

    The first complete one of a bag is kept. Of a bag that pays it names the cost, and a pilot of the bag is
    in the system. What was simulated is kept once for each kind of forecast.
    """
    kept, made = [], dict(draft.memory.forecasts)
    for bag in snapshot.ahead:
        found = forecast_of(snapshot, bag)
        raw = _new_raw(made.get(bag.id), found)
        made[bag.id] = MadeForecast(snapshot.now, found, bag.finished)
        first = None if bag.id in snapshot.forecast_kept else _first(snapshot, bag, found)
        if first is not None or raw is not None:
            kept.append(KeepForecast(bag.id, first, raw))
    if snapshot.ahead:
        draft.keep(forecasts=made)
    return kept


def forecast_of(snapshot: Snapshot, bag: BagFacts) -> Forecast:
    """The forecast of a bag by what is known now; its cost only if enough tasks have finished.

    Of a growing bag, the work of the tasks that are ready alone.
    """
    found = forecast(known_bag(snapshot, bag))
    if bag.growing:
        return msgspec.structs.replace(found, end=None, cost=None, raw=None)
    return found if worth_telling(bag.finished, bag.tasks) else msgspec.structs.replace(found, cost=None)


def _new_raw(before: MadeForecast | None, found: Forecast) -> Raw | None:
    """The simulated forecast, to be scored; None: it is of the kind of the forecast before, or has no latest
    end."""
    last = None if before is None else before.forecast.raw
    if found.raw is None or math.isinf(found.raw.ends.high) or (last and last.kind == found.raw.kind):
        return None
    return found.raw


def _first(snapshot: Snapshot, bag: BagFacts, found: Forecast) -> FirstForecast | None:
    """The forecast as it is kept; None: it is not complete."""
    if found.end is None or math.isinf(found.end.high):
        return None
    own = any(pilot.bag == bag.id for site in snapshot.sites.values() for pilot in site.pilots)
    if bag.alone and (found.cost is None or not own):
        return None
    return FirstForecast(
        made=snapshot.now, finished=bag.finished, tasks=bag.tasks, cost=found.cost, end=found.end
    )
