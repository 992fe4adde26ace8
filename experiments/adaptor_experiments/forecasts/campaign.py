"""Running all bags, and asking for a forecast on the way."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from adaptor.budget.estimation.forecast import forecast
from adaptor_experiments.forecasts.design import BAG, Row, Settings, bag_of, moments, way_of
from adaptor_experiments.forecasts.site_run import run_bag
from adaptor_experiments.parallel import in_processes

_AT_ONCE = 10
"""Orders that a process runs before it hands them in."""


class Piece(msgspec.Struct, frozen=True):
    bag: str
    settings: Settings
    orders: range


def run_all(settings: Settings, processes: int, done: Callable[[int], None]) -> list[Row]:
    """All forecasts, in the order of the bags; `done` is told how many bags have been run.

    Raises:
        ReplayError: the measured runtimes cannot be read.
    """
    pieces = [
        Piece(bag, settings, range(first, min(first + _AT_ONCE, settings.orders)))
        for bag in settings.bags
        for first in range(0, settings.orders, _AT_ONCE)
    ]
    rows: list[Row] = []
    for piece, some in zip(pieces, in_processes(run_piece, pieces, processes), strict=True):
        rows += some
        done(len(piece.orders))
    return rows


def run_piece(piece: Piece) -> list[Row]:
    return [row for order in piece.orders for row in run_order(piece.bag, piece.settings, order)]


def run_order(key: str, settings: Settings, order: int) -> list[Row]:
    """The forecasts of one bag, by the very function that `adaptor status` prints."""
    bag, way = bag_of(key, settings, order), way_of(order)
    names = moments(len(bag))
    outcome = run_bag(bag, way.site, way.prefer, list(names), number=order + 1, order=BAG[key].order)
    rows = []
    for known, moment in zip(outcome.told, names.values(), strict=False):
        found = forecast(known)
        end = found.end
        rows.append(
            Row(
                bag=key,
                prefer=way.preference,
                unit=way.unit,
                order=order,
                moment=moment,
                cost=outcome.cost,
                cost_low=found.cost.low,
                cost_value=found.cost.value,
                cost_high=found.cost.high,
                end=outcome.end,
                end_low=end.low if end else math.nan,
                end_value=end.value if end else math.nan,
                end_high=end.high if end else math.nan,
            )
        )
    return rows
