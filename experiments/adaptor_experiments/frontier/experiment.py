"""Bags with all wishes, run in parallel processes; the tables, the picture and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HEURISTICS
from adaptor.forecast.forecast import worth_telling
from adaptor.runtimes.known import EarlierTasks
from adaptor.units import format_duration
from adaptor_experiments.a2ha.bags import KINDS, runtimes
from adaptor_experiments.experiment import Experiment, Plan
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.forecasts.site_run import Outcome, submitted
from adaptor_experiments.frontier.design import (
    BAGS,
    BAGS_AT,
    KNOWLEDGE,
    NEAR,
    QUICK,
    SHAPE,
    SITES,
    SLACK,
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
from adaptor_experiments.tables import Runs, texts

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


_HOUR = 3600.0
_MARKS = dict(zip(KNOWLEDGE, "osx", strict=True))
_BUDGETS, _DEADLINES = "more budget: later", "later deadline: dearer"
_PREFERENCES = {
    "cheap dearer than balanced": ("cheap", "balanced"),
    "balanced dearer than fast": ("balanced", "fast"),
}
MOMENTS = ("first forecast", "half of the tasks")
_NOT_RUN = ["-"] * 3
_PLAIN = "budget of at least the plain cost: later"


def report_of(rows: Runs[Row], settings: Settings, folder: Path) -> Report:
    """Raises ReplayError: the picture cannot be written."""
    return texts("frontier").report(
        [
            _near(sites, kind, runs)
            for (sites, kind), runs in rows.by("sites", "kind").items()
            if kind != "none"
        ],
        [_picture(rows, settings, folder / "figures/frontier.svg")],
        tables(rows),
        settings=settings,
        bags=", ".join(KINDS[bag].title for bag in settings.bags),
    )


def tables(rows: Runs[Row]) -> list[Exhibit]:
    page = texts("frontier")
    units = [format_duration(unit) for unit in UNITS]
    factors = [
        [sites, kind, known, *(_factor(runs.where(unit=unit)) for unit in UNITS)]
        for (sites, kind, known), runs in rows.by("sites", "kind", "known").items()
    ]
    return [
        page.exhibit("factors", factors, units, goal=NEAR),
        page.exhibit("budgets", _by_wish(rows.where(kind="budget"), "budget", _budget), _columns("cost")),
        page.exhibit(
            "deadlines", _by_wish(rows.where(kind="deadline"), "deadline", _deadline), _columns("late")
        ),
        page.exhibit("forecasts", _forecasts(rows.where(kind="deadline"))),
        page.exhibit("checks", _checks(rows), slack=SLACK),
    ]


def counted(runs: Runs[Row]) -> Runs[Row]:
    """The runs that have a factor: done by their deadline, and the search finds a policy for their wish."""
    return Runs(row for row in runs if row.kept and row.possible)


def violations(rows: Runs[Row]) -> dict[str, list[float]]:
    """By what should not be: the ratios of the pairs of runs that it is about; at most 1 is right."""
    found: dict[str, list[float]] = {name: [] for name in (_BUDGETS, _DEADLINES, *_PREFERENCES, _PLAIN)}
    for runs in rows.by("sites", "bag", "order", "unit", "known").values():
        done = Runs(row for row in runs if row.kept)
        budgets = sorted(done.where(kind="budget"), key=lambda row: row.budget)
        deadlines = sorted(done.where(kind="deadline"), key=lambda row: row.deadline)
        found[_BUDGETS] += [more.end / less.end for less, more in pairwise(budgets)]
        found[_DEADLINES] += [later.cost / sooner.cost for sooner, later in pairwise(deadlines)]
        for name, kinds in _PREFERENCES.items():
            less, more = (done.where(kind=kind) for kind in kinds)
            found[name] += [a.cost / b.cost for a in less for b in more]
        found[_PLAIN] += [row.slowdown if row.ended else math.inf for row in runs if row.roomy]
    return found


def _checks(rows: Runs[Row]) -> Iterator[list[str]]:
    for name, ratios in violations(rows).items():
        bad, worst = [ratio for ratio in ratios if ratio > SLACK], max(ratios, default=math.nan)
        yield [name, f"{len(bad)} of {len(ratios)}", "not done" if math.isinf(worst) else f"{worst:.2f}"]
    over = [row for row in rows if row.cost > row.budget + 1e-5]
    yield ["budget exceeded", f"{len(over)} of {sum(row.budget < math.inf for row in rows)}", ""]
    free = [row for row in rows if math.isinf(row.budget)]
    yield ["no budget, and not done", f"{sum(not row.ended for row in free)} of {len(free)}", ""]


def _near(sites: str, kind: str, runs: Runs[Row]) -> str:
    shown = (f"{counted(some).geometric('best'):.2f} ({known})" for known, some in runs.by("known").items())
    return texts("frontier").say(
        "near", sites=sites, kind=kind, factors=", ".join(shown), done=f"{runs.mean('kept'):.0%}"
    )


def _factor(runs: Runs[Row]) -> str:
    """The mean, and the worst in brackets."""
    some = counted(runs)
    return f"{some.geometric('best'):.2f} ({some.values('best').max():.2f})" if some else "-"


def _columns(last: str) -> list[str]:
    return [f"{known}: {what}" for known in KNOWLEDGE for what in ("kept", last, "factor")]


def _by_wish(rows: Runs[Row], name: str, cells: Callable[[Runs[Row]], list[str]]) -> Iterator[list[str]]:
    """A line for each kind of sites, unit and wish; in it the cells for each knowledge of the runtimes."""
    for (sites, unit, wanted), runs in rows.by("sites", "unit", f"wish.{name}").items():
        shown = [cell for known in KNOWLEDGE for cell in cells(runs.where(known=known))]
        yield [sites, format_duration(unit), f"{wanted:g}", *shown]


def _budget(runs: Runs[Row]) -> list[str]:
    """Share of possible bags that are done, cost over work, and factor."""
    if not runs:
        return _NOT_RUN
    possible, done = Runs(row for row in runs if row.possible), counted(runs)
    share = f"{len(done)} of {len(possible)}"
    return [share, f"{done.geometric('price'):.2f}" if done else "-", _factor(runs)]


def _deadline(runs: Runs[Row]) -> list[str]:
    """Number of kept deadlines, the worst end over the deadline, and the factor of the kept ones."""
    if not runs:
        return _NOT_RUN
    late = max(row.end / row.deadline if row.ended else math.inf for row in runs)
    return [f"{sum(row.kept for row in runs)} of {len(runs)}", f"{late:.2f}", _factor(runs)]


def _forecasts(rows: Runs[Row]) -> Iterator[list[str]]:
    """By unit and moment: how many forecasts there are, say that the deadline is kept, and are wrong."""
    for unit, runs in rows.by("unit").items():
        for number, moment in enumerate(MOMENTS):
            told = [row for row in runs if len(row.sure) > number]
            sure = [row for row in told if row.sure[number]]
            missed = sum(not row.kept for row in sure)
            share = f"{missed / len(sure):.0%}" if sure else "-"
            yield [format_duration(unit), moment, f"{len(sure)} of {len(told)}", str(missed), share]


def _picture(rows: Runs[Row], settings: Settings, path: Path) -> Drawing:
    bags = [bag for bag in QUICK if bag in settings.bags]
    shown = [
        (sites, unit, bag)
        for sites in SITES
        for unit in UNITS
        for bag in (bags if sites == "one" else bags[:1])
        if rows.where(sites=sites, unit=unit, bag=bag)
    ]
    colours = {kind: f"C{place}" for place, kind in enumerate(rows.by("kind"))}
    panels = Panels(len(shown))
    for axes, (sites, unit, bag) in zip(panels.plots, shown, strict=True):
        some = rows.where(sites=sites, bag=bag, unit=unit, order=0)
        tasks, plain = tasks_of(bag, settings.seed, 0)[: settings.shape.tasks], some.where(known="unknown")[0]
        best = frontier(tasks, *sites_of(sites, unit, settings.shape))
        costs = [policy.cost / _HOUR / plain.least for policy in best]
        ends = [policy.end / _HOUR / plain.plain_end for policy in best]
        axes.step(costs, ends, where="post", color="black", linewidth=1, label="the best")
        for (kind, known), runs in Runs(row for row in some if row.ended).by("kind", "known").items():
            axes.plot(
                runs.values("price"),
                runs.values("end") / plain.plain_end,
                _MARKS[known],
                color=colours[kind],
                markersize=4,
                alpha=0.7,
                label=kind if known == KNOWLEDGE[0] else None,
            )
        for known, mark in _MARKS.items():
            axes.plot([], [], mark, color="gray", markersize=4, label=f"runtimes: {known}")
        title = f"{KINDS[bag].title}, charged by {format_duration(unit)}"
        axes.set_title(title if sites == "one" else f"{title}, {sites}", fontsize="medium")
        axes.set(xscale="log", yscale="log", xlabel="cost / work", ylabel="time / time without a wish")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}")
        axes.tick_params(which="minor", labelsize=6)
    caption = "What bags cost and how long they take, beside the best that a search finds"
    return panels.save(path, caption, legend=True)


def plan(
    seed: int = 1, orders: int = 3, bags: tuple[str, ...] = BAGS, **shape: Any
) -> Plan[Piece, Row, Settings]:
    """Of that number of orders of each bag, at a site of that `Shape`."""
    shape.setdefault("initial_tr", HEURISTICS[shape["heuristic"]].assumed_runtime)
    shape["requests"] = min(shape["requests"], shape["processors"])
    settings = Settings(seed=seed, orders=orders, bags=bags, shape=Shape(**shape))
    return Plan(settings, pieces(settings), report_of)


EXPERIMENT = Experiment(row=Row, run=run_piece, plan=plan)
