"""The bags that are run and ended in each way, and the page with what the slides find of the tail phase.

The slides give no bounds for "fine", "worth" or "bad". Those here are ours and stand next to each finding.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from adaptor.budget.provisioning.menu import menu
from adaptor.budget.provisioning.quoting import NORMAL_SAMPLE, REPLICATED
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor_experiments.bats.design import (
    BUDGETS,
    CASES,
    EVERY_WAY,
    INTERVAL,
    KINDS,
    SAMPLERS,
    SITES,
    THRESHOLD,
    UNIT,
    WAYS,
    BudgetName,
    Kind,
    Settings,
    Way,
    bag,
)
from adaptor_experiments.bats.ending import TailPhase
from adaptor_experiments.bats.sampling import sample
from adaptor_experiments.bats.throughput import Throughput
from adaptor_experiments.bootstrap import Drawn, Interval, Matrix, drawn_means, weights
from adaptor_experiments.claims import Bounds, Verdict, tally
from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.tables import Figure, Runs, grouped_bars, texts

_LINES = {"minimal +10 %": "cheapest +10 %", "fastest": "fastest"}
"""The line of the menu that each budget stands for."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One bag that was run: a line of the results. Times in seconds, costs in credits."""

    kind: str
    bag: int
    run: int
    budget: str
    way: str
    planned: float
    """The time that the menu promised."""
    allowed: float
    """The budget, with what the sample has cost."""
    sampled: float
    """Cost of the sample."""
    seconds: float
    without: float
    """Without a tail phase."""
    spent: float
    replicas: int
    won: int
    """Replicas that ended before any other attempt of their task."""
    migrations: int
    asked: bool
    """Whether the budget was found to be too small on the way."""

    @property
    def relative(self) -> float:
        """Time, per cent of that without a tail phase."""
        return 100 * self.seconds / self.without

    @property
    def over(self) -> bool:
        return self.spent > self.allowed * (1 + 1e-9)


def of(runs: Runs[Run], kind: Kind, budget: BudgetName, way: Way) -> Runs[Run]:
    return runs.where(kind=kind, budget=budget, way=way)


class Piece(msgspec.Struct, frozen=True):
    """One bag."""

    kind: Kind
    number: int
    settings: Settings

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number}"


def pieces(settings: Settings) -> list[Piece]:
    return [Piece(kind, number, settings) for kind in KINDS for number in range(settings.bags)]


def run_piece(piece: Piece) -> list[Run]:
    """The bag in all orders, with both budgets, in all ways."""
    runtimes = bag(piece.kind, piece.settings, piece.number)
    times = [[float(runtime / site.speed) for runtime in runtimes] for site in SITES]
    found = []
    for run in range(piece.settings.runs):
        draw = random.Random(f"{piece.settings.seed} {piece.kind} {piece.number} {run}")  # noqa: S311
        sampled = sample(times, draw)
        rest = [task for task in range(len(runtimes)) if task not in sampled.done]
        choices = {line.name: line for line in menu(len(rest), offers(sampled.known), len(sampled.done))}
        order = draw.sample(rest, len(rest))
        for budget in BUDGETS:
            line = choices[_LINES[budget]]
            allowed = line.budget + sampled.cost
            ending = Throughput(times, order, line, allowed, sampled).run()
            draws = {way: random.Random(run) for way in EVERY_WAY}  # noqa: S311
            results = {way: TailPhase(ending, times, way, draws[way]).run() for way in EVERY_WAY}
            found += [
                Run(
                    kind=piece.kind,
                    bag=piece.number,
                    run=run,
                    budget=budget,
                    way=way,
                    planned=line.seconds.value,
                    allowed=allowed,
                    sampled=sampled.cost,
                    without=results["none"].seconds,
                    asked=ending.asked,
                    **msgspec.structs.asdict(result),
                )
                for way, result in results.items()
            ]
    return found


def offers(known: dict[str, TaskTime]) -> list[SiteOffer]:
    return [site.offer(known[site.name]) for site in SITES]


_WORDS: dict[Verdict, str] = {"confirms": "holds", "open": "open", "contradicts": "does not hold"}
_OTHERS: tuple[Way, ...] = ("random", "stochastic", "perfect", "migration")
"""The slides' ways other than doing nothing."""
_SEED = 1


class Cell:
    """The runs of one kind of bag with one budget. Intervals are those of drawing its bags again."""

    def __init__(self, runs: Runs[Run], kind: str, budget: str) -> None:
        self._by_way = runs.where(kind=kind, budget=budget).by("way")

    def sooner(self, way: Way, other: Way) -> Interval:
        """Time of a way less that of another, in points of the time without a tail phase."""
        return (self._mean(way, "relative") - self._mean(other, "relative")).interval

    def worst(self) -> Interval:
        """Difference of the slowest way that does something to doing nothing."""
        latest = max(_OTHERS, key=lambda way: float(self._mean(way, "relative").value))
        return self.sooner(latest, "none")

    def spread(self, way: Way, other: Way) -> Interval:
        """Standard deviation of the times of a way less that of another, in the same points."""
        deviations = [
            self._mean(name, lambda run: run.relative**2).through(_deviation, self._mean(name, "relative"))
            for name in (way, other)
        ]
        return (deviations[0] - deviations[1]).interval

    def in_vain(self, way: Way, other: Way) -> Interval:
        """Share of replicas that did not end first: of a way less that of another, in points."""
        lost = [self._mean(name, "replicas").through(_lost, self._mean(name, "won")) for name in (way, other)]
        return (lost[0] - lost[1]).through(lambda share: 100 * share).interval

    def _mean(self, way: Way, figure: Figure) -> Drawn:
        by_bag = np.array([runs.mean(figure) for runs in self._by_way[way].by("bag").values()])
        return drawn_means(by_bag, weights(len(by_bag), _SEED))


def _deviation(squares: Matrix, means: Matrix) -> Matrix:
    return np.asarray(np.sqrt(np.maximum(0.0, squares - means**2)))


def _lost(started: Matrix, won: Matrix) -> Matrix:
    """Share; none where nothing was started."""
    return np.where(started > 0, 1 - won / np.maximum(started, 1e-9), 0.0)


FINDINGS: tuple[tuple[Callable[[Cell], Interval], float], ...] = (
    (Cell.worst, 0.0),
    (lambda cell: cell.sooner("stochastic", "none"), 0.0),
    (lambda cell: cell.sooner("random", "none"), 0.0),
    (lambda cell: cell.in_vain("stochastic", "random"), 0.0),
    (lambda cell: cell.spread("stochastic", "random"), 0.0),
    (lambda cell: cell.sooner("stochastic", "migration"), 1.0),
    (lambda cell: cell.sooner("nothing lost", "stochastic"), 0.0),
)
"""Measure for each sentence of the page's table, and the bound below which the sentence holds."""


def findings(runs: Runs[Run]) -> Exhibit:
    """Each finding of the slides in each kind of bag with each budget."""
    page = texts("bats")
    cells = [Cell(runs, *case) for case in CASES]
    rows = []
    for (measure, bound), texts_of_row in zip(FINDINGS, page.tables["findings"].rows, strict=True):
        measured = [measure(cell) for cell in cells]
        found = tally(measured, Bounds(high=bound).judge)
        told = [f"{word} in {len(found[verdict])}" for verdict, word in _WORDS.items() if found[verdict]]
        rows.append([*texts_of_row, *map(str, measured), f"{', '.join(told)} of {len(measured)}"])
    return page.exhibit("findings", rows, (*map(", ".join, CASES), "verdict"))


TITLES: dict[Way, str] = {
    "none": "no tail phase",
    "random": "random replicas",
    "stochastic": "slides: stochastic",
    "daemon": "daemon",
    "perfect": "perfect knowledge",
    "migration": "stochastic + migration",
}
_WIDTH = 0.16
_HOUR, _MINUTE = 3600, 60


def report_of(runs: Runs[Run], settings: Settings, folder: Path) -> Report:
    """Raises ReplayError: a figure cannot be written."""
    page, judged = texts("bats"), findings(runs)
    over = runs.where(over=True, asked=False)
    return page.report(
        (
            *(_gains(runs, budget) for budget in BUDGETS),
            page.say("costs", **{way: len(over.where(way=way)) for way in ("daemon", "none")}),
            *(f"“{sentence}”: {verdict}." for sentence, *_, verdict in judged.rows),
        ),
        [_figure(runs, budget, folder / "figures") for budget in BUDGETS],
        [judged, *tables(runs), numbers(settings), page.exhibit("left-out")],
        settings=settings,
        samplers=SAMPLERS,
        machines="; ".join(
            f"{site.machines} {site.name} machines of speed {site.speed:g} at {site.price:g} credits an hour"
            for site in SITES
        ),
    )


def tables(runs: Runs[Run]) -> list[Exhibit]:
    page = texts("bats")

    def by_way(key: str, cell: Callable[[Runs[Run]], str]) -> Exhibit:
        rows = [[*case, *(cell(of(runs, *case, way)) for way in WAYS)] for case in CASES]
        return page.exhibit(key, rows, TITLES.values())

    def once(key: str, *cells: Callable[[Runs[Run]], str]) -> Exhibit:
        """Exhibit of figures that do not depend on the way to end a bag."""
        return page.exhibit(
            key, [[*case, *(cell(of(runs, *case, "none")) for cell in cells)] for case in CASES]
        )

    return [
        by_way("time", lambda some: some.spread("relative").shown(unit=" %")),
        by_way("planned", _planned),
        by_way("over", _over),
        once(
            "sampled",
            lambda some: f"{some.mean('sampled'):.1f}",
            lambda some: f"{100 * some.mean(lambda run: run.sampled / run.allowed):.1f} %",
        ),
        by_way("copies", _copies),
        once("asked", _asked),
    ]


def _planned(runs: Runs[Run]) -> str:
    values = runs.where(asked=False).values(lambda run: 100 * run.seconds / run.planned)
    return f"{np.median(values):.0f} % ({np.quantile(values, 0.9):.0f} %)" if len(values) else "-"


def _over(runs: Runs[Run]) -> str:
    through = runs.where(asked=False)
    if not through:
        return "-"
    over = through.where(over=True)
    by = f", by {over.mean(lambda run: 100 * (run.spent / run.allowed - 1)):.1f} %" if over else ""
    return f"{len(over) / len(through):.0%}{by}"


def _copies(runs: Runs[Run]) -> str:
    replicas, won, moved = (runs.mean(field) for field in ("replicas", "won", "migrations"))
    text = f"{replicas:.1f}" + (f" ({1 - won / replicas:.0%} in vain)" if replicas else "")
    return text + (f", {moved:.1f} moved" if moved else "")


def _asked(runs: Runs[Run]) -> str:
    return f"{runs.mean('asked'):.0%}"


def numbers(settings: Settings) -> Exhibit:
    """Each number of the slides, next to ours."""
    ours = {
        "prices": ", ".join(f"{site.price:g}" for site in SITES) + " credits",
        "unit": f"{UNIT / _HOUR:g} hour",
        "sample": str(NORMAL_SAMPLE),
        "compact sample": f"{REPLICATED}, {NORMAL_SAMPLE - REPLICATED}",
        "re-evaluation": f"every {INTERVAL / _MINUTE:g} minutes; the daemon every 3 s",
        "threshold": str(THRESHOLD),
        "ways": f"5, and the daemon's: {len(WAYS)}",
        "kinds": ", ".join(KINDS),
        "runs": f"{settings.bags}, {settings.runs}",
        "budgets": "; ".join(reversed(BUDGETS)),
    }
    agree = ("sample", "compact sample", "choices", "threshold")
    return texts("bats").exhibit("paper-numbers", texts("bats").compared(ours, agree))


def _gains(runs: Runs[Run], budget: BudgetName) -> str:
    def gain(way: Way) -> str:
        by_kind = {kind: 100 - of(runs, kind, budget, way).mean("relative") for kind in KINDS}
        return ", ".join(f"{value:.1f} % ({kind})" for kind, value in by_kind.items())

    ways: tuple[Way, ...] = ("daemon", "stochastic", "perfect")
    return texts("bats").say("gains", budget=budget.capitalize(), **{way: gain(way) for way in ways})


def _figure(runs: Runs[Run], budget: BudgetName, folder: Path) -> Drawing:
    series = {TITLES[way]: [of(runs, kind, budget, way).spread("relative") for kind in KINDS] for way in WAYS}
    panels = Panels(1)
    grouped_bars(panels.first, KINDS, series, _WIDTH, error_kw={"linewidth": 0.7})
    panels.first.axhline(100, color="black", linewidth=0.8)
    panels.first.set(ylabel="time, per cent of that without a tail phase", ylim=(80, 110))
    name = budget.replace(" %", "").replace(" +", "-plus-")
    caption = f"The ways to end a bag, {budget} budget (low is good; bars: standard deviation)"
    return panels.save(folder / f"tail-{name}.svg", caption, legend=True)


EXPERIMENT = Experiment(row=Run, run=run_piece, plan=planned(Settings, pieces, report_of))
