"""Running each bag with all wishes, in parallel processes."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from adaptor.forecast.forecast import worth_telling
from adaptor.runtimes.known import EarlierTasks
from adaptor_experiments.a2ha.bags import KINDS, runtimes
from adaptor_experiments.forecasts.site_run import Outcome, submitted
from adaptor_experiments.frontier.design import (
    BAGS_AT,
    KNOWLEDGE,
    SHAPE,
    SITES,
    UNITS,
    Knowledge,
    Row,
    Settings,
    Shape,
    Sites,
    Wish,
    sites_of,
    wishes_of,
)
from adaptor_experiments.frontier.search import factor, frontier

_HOUR = 3600.0
_LONGEST = {"one": 100 * 3600, "two": 8 * 3600, "donated": 8 * 3600}
"""Seconds after which a run is given up: several times the work of a bag, or what the cheapest takes."""
_EARLIER = 10_000  # added to the number of an order: the earlier bag of its kind


class Piece(msgspec.Struct, frozen=True):
    """A bag with all wishes."""

    bag: str
    order: int
    unit: int
    known: Knowledge
    sites: Sites
    seed: int
    wishes: tuple[Wish, ...]
    shape: Shape = SHAPE

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.sites}-{self.bag}-{self.order}-{self.unit}-{self.known}"


def pieces(settings: Settings) -> list[Piece]:
    """All bags with all that is run of them; few at several sites."""
    return [
        Piece(bag, order, unit, known, sites, settings.seed, wishes, settings.shape)
        for order in range(settings.orders)
        for sites in SITES
        for bag in settings.bags
        if bag in BAGS_AT[sites]
        for unit in UNITS
        for known in KNOWLEDGE
        if (wishes := wishes_of(sites, known, unit, order))
    ]


def run_piece(piece: Piece) -> list[Row]:
    """A row for each wish; the first wish is none."""
    tasks = tasks_of(piece.bag, piece.seed, piece.order)[: piece.shape.tasks]
    work, policies = math.fsum(tasks), frontier(tasks, *sites_of(piece.sites, piece.unit, piece.shape))
    least = work if piece.sites == "one" else policies[0].cost
    plain = _run(piece, tasks, Wish(), least, math.inf)
    rows = []
    for wish in piece.wishes:
        found = plain if wish == Wish() else _run(piece, tasks, wish, least, plain.end)
        budget = math.inf if wish.budget is None else wish.budget * least
        by = math.inf if wish.deadline is None else wish.deadline * plain.end
        row = Row(
            bag=piece.bag,
            order=piece.order,
            unit=piece.unit,
            known=piece.known,
            sites=piece.sites,
            wish=wish,
            tasks=len(tasks),
            work=work / _HOUR,
            least=least / _HOUR,
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
    """Figures that a bag of the same kind has left behind."""
    tasks = tasks_of(bag, seed, order + _EARLIER)
    low, high = np.quantile(tasks, [0.05, 0.95])
    return EarlierTasks(
        kind=bag, tasks=len(tasks), mean=float(np.mean(tasks)), factor=2.0, low=float(low), high=float(high)
    )


def _run(piece: Piece, tasks: list[float], wish: Wish, least: float, plain_end: float) -> Outcome:
    """`least`: credits times 3600."""
    return submitted(
        tasks,
        *sites_of(piece.sites, piece.unit, piece.shape),
        prefer=wish.prefer,
        deadline=None if wish.deadline is None else wish.deadline * plain_end,
        budget=None if wish.budget is None else wish.budget * least / _HOUR,
        time=math.fsum(tasks) / len(tasks) if piece.known == "time" else None,
        earlier=earlier_of(piece.bag, piece.seed, piece.order) if piece.known == "earlier" else None,
        number=piece.order + 1,
        order="random",
        pays=wish != Wish(),
        foresees=wish.budget is not None and wish.deadline is not None,
    ).run(
        _moments(len(tasks)) if (wish.kind, piece.sites) == ("deadline", "one") else (),
        longest=_LONGEST[piece.sites],
    )


def _moments(tasks: int) -> tuple[int, int]:
    """Finished tasks at which a forecast is made: as soon as one is worth telling, and half of them."""
    return next(count for count in range(tasks) if worth_telling(count, tasks)), tasks // 2
