"""Running all bags, and asking for a forecast on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.forecast.estimate import Estimate
from adaptor.model import Limits
from adaptor_experiments.forecasts import paid_bags, queue_bags
from adaptor_experiments.forecasts.row import Row
from adaptor_experiments.forecasts.site_run import CheckedSite, Outcome, submitted
from adaptor_experiments.forecasts.trace_queues import QueueAt, queues_of
from adaptor_experiments.resumable import gathered

_GIVEN_UP = 4 * 86400  # seconds after which a bag on a queue is left out
_NONE = Estimate(math.nan, math.nan, math.nan)


class OnQueue(msgspec.Struct, frozen=True, eq=False):
    """A bag on the queue of a trace."""

    trace: str
    processors: int
    queue: QueueAt
    number: int
    seed: int


def on_queues(
    traces: Sequence[Path], bags: int, seed: int, processes: int, done: Callable[[int], None]
) -> list[Row]:
    """All forecasts on the queues of traces, in their order and that of the bags.

    Args:
        bags: on each trace, each at an instant of its own.
        done: called for each bag.

    Raises:
        TraceError: a trace cannot be read.
    """
    rows: list[Row] = []
    for place, trace in enumerate(traces):
        processors, queues = queues_of(trace, bags, seed)
        pieces = [
            OnQueue(trace.name.split(".")[0], processors, queue, number, seed)
            for number, queue in enumerate(queues, 1000 * place)
        ]
        rows += gathered(run_on_queue, pieces, processes, lambda _: done(1))
    return rows


def run_on_queue(piece: OnQueue) -> list[Row]:
    """The forecasts of a bag at the moments; none if the bag never ends."""
    bag = queue_bags.bag_of(piece.number, piece.seed)
    site = CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0),
        processors=piece.processors,
        limits=Limits(max_pending_requests=4, max_proc=max(1, piece.processors // 4), max_tr=4 * 3600),
        time_resolution=60,
        initial_tr=3600.0,
        poll=60.0,
        jobs=piece.queue.jobs,
        shares=piece.queue.shares,
    )
    run = submitted(bag.runtimes, site, time=bag.hint, pays=False, replicas=0, foresees=False)
    moments = {math.ceil(share * len(bag.runtimes)): f"{share:.0%}" for share in queue_bags.MOMENTS}
    outcome = run.run(list(moments), _GIVEN_UP)
    if not outcome.ended:
        return []
    known = {"where": piece.trace, "bag": bag.kind, "number": piece.number, "tasks": len(bag.runtimes)}
    return _rows(outcome, moments, hint=bag.hint is not None, instant=float(piece.queue.instant), **known)


def paid_for(settings: paid_bags.Settings, processes: int, done: Callable[[int], None]) -> list[Row]:
    """All forecasts of bags that pay, in their order; `done` gets the number of bags that have been run.

    Raises:
        ReplayError: the measured runtimes cannot be read.
    """
    pieces = [(bag, order) for bag in settings.bags for order in range(settings.orders)]
    return gathered(partial(run_order, settings), pieces, processes, lambda _: done(1))


def run_order(settings: paid_bags.Settings, piece: tuple[str, int]) -> list[Row]:
    """The forecasts of one bag that pays."""
    key, order = piece
    runtimes, way = paid_bags.bag_of(key, settings, order), paid_bags.way_of(order)
    moments = paid_bags.moments(len(runtimes))
    run = submitted(runtimes, way.site, prefer=way.prefer, number=order + 1, order=paid_bags.BAG[key].order)
    outcome = run.run(list(moments))
    known = {"where": way.title, "bag": key, "number": order, "tasks": len(runtimes)}
    return _rows(outcome, moments, cost=outcome.cost, **known)


def _rows(outcome: Outcome, moments: Mapping[int, str], **bag: Any) -> list[Row]:
    found = []
    for told, moment in zip(outcome.told, moments.values(), strict=False):
        end, cost, raw = told.forecast.end or _NONE, told.forecast.cost or _NONE, told.forecast.raw
        if raw is not None:
            bag |= {"kind": raw.kind, "unit": raw.unit, "raw_low": raw.ends.low, "raw_high": raw.ends.high}
        found.append(
            Row(
                **bag,
                moment=moment,
                at=told.at,
                end=outcome.end,
                end_low=end.low,
                end_value=end.value,
                end_high=end.high,
                cost_low=cost.low,
                cost_value=cost.value,
                cost_high=cost.high,
                pace=told.pace,
                planned=told.planned,
            )
        )
    return found
