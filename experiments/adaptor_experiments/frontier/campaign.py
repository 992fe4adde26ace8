"""Running each bag with all wishes, in parallel processes."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from adaptor.crafting.situation import EarlierTasks
from adaptor.forecast.forecast import worth_telling
from adaptor_experiments.a2ha.bags import KINDS, runtimes
from adaptor_experiments.forecasts.site_run import Outcome, submitted
from adaptor_experiments.frontier.design import (
    KNOWLEDGE,
    SINGLE,
    UNITS,
    WISHES,
    Knowledge,
    Row,
    Settings,
    Wish,
    site_of,
)
from adaptor_experiments.frontier.search import factor, frontier
from adaptor_experiments.parallel import gathered

_HOUR = 3600.0
_LONGEST = 100 * 3600
"""Seconds after which a run is given up: several times the work of a bag."""
_EARLIER = 10_000
"""Added to the number of an order: the earlier bag of its kind."""


class Piece(msgspec.Struct, frozen=True):
    """A bag with all wishes."""

    bag: str
    order: int
    unit: int
    known: Knowledge
    seed: int
    wishes: tuple[Wish, ...]


def pieces(settings: Settings) -> list[Piece]:
    """All bags; a wish for a budget and a deadline in a few alone, as its forecasts take minutes."""
    return [
        Piece(bag, order, unit, known, settings.seed, WISHES if (order, known) == (0, "unknown") else SINGLE)
        for order in range(settings.orders)
        for bag in settings.bags
        for unit in UNITS
        for known in KNOWLEDGE
    ]


def run_all(settings: Settings, processes: int, done: Callable[[int], None]) -> list[Row]:
    """The rows of all runs; `done` is told how many have ended."""
    return gathered(run_piece, pieces(settings), processes, done)


def run_piece(piece: Piece) -> list[Row]:
    """A row for each wish; the first wish is none."""
    tasks = tasks_of(piece.bag, piece.seed, piece.order)
    work, policies = math.fsum(tasks), frontier(tasks, site_of(piece.unit))
    plain = _run(piece, tasks, Wish(), math.inf)
    rows = []
    for wish in piece.wishes:
        found = plain if wish == Wish() else _run(piece, tasks, wish, plain.end)
        budget = math.inf if wish.budget is None else wish.budget * work
        by = math.inf if wish.deadline is None else wish.deadline * plain.end
        row = Row(
            bag=piece.bag,
            order=piece.order,
            unit=piece.unit,
            known=piece.known,
            wish=wish,
            tasks=len(tasks),
            work=work / _HOUR,
            done=found.done,
            ended=found.ended,
            cost=found.cost,
            end=found.end / _HOUR,
            sure=[told.forecast.end is not None and told.forecast.end.high <= by for told in found.told],
            plain_cost=plain.cost,
            plain_end=plain.end / _HOUR,
            best=factor(policies, wish, found.cost * _HOUR, found.end, budget, by),
        )
        rows.append(row)
    return rows


def tasks_of(bag: str, seed: int, order: int) -> list[float]:
    """Seconds of each task."""
    return [float(runtime) for runtime in runtimes(KINDS[bag], seed, order)]


def earlier_of(bag: str, seed: int, order: int) -> EarlierTasks:
    """What a bag of the same kind has left behind."""
    tasks = tasks_of(bag, seed, order + _EARLIER)
    low, high = np.quantile(tasks, [0.05, 0.95])
    return EarlierTasks(
        kind=bag, tasks=len(tasks), mean=float(np.mean(tasks)), factor=2.0, low=float(low), high=float(high)
    )


def _run(piece: Piece, tasks: list[float], wish: Wish, plain_end: float) -> Outcome:
    work = math.fsum(tasks)
    return submitted(
        tasks,
        site_of(piece.unit),
        prefer=wish.prefer,
        deadline=None if wish.deadline is None else wish.deadline * plain_end,
        budget=None if wish.budget is None else wish.budget * work / _HOUR,
        time=work / len(tasks) if piece.known == "time" else None,
        earlier=earlier_of(piece.bag, piece.seed, piece.order) if piece.known == "earlier" else None,
        number=piece.order + 1,
        order="random",
        pays=wish != Wish(),
        foresees=wish.budget is not None and wish.deadline is not None,
    ).run(_moments(len(tasks)) if wish.kind == "deadline" else (), longest=_LONGEST)


def _moments(tasks: int) -> tuple[int, int]:
    """Finished tasks at which a forecast is made: as soon as one is worth telling, and half of them."""
    return next(count for count in range(tasks) if worth_telling(count, tasks)), tasks // 2
