"""Runs of each cell of Figs 1 and 2; the tables, the figures and the page."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.ricciardi.design import (
    CHANGES,
    COUNTS,
    FLAVOURS,
    GOALS,
    LEAST,
    MORE,
    SECOND,
    TABLES,
    TASKS,
    VARIATIONS,
    Cell,
    Change,
    Flavour,
    Goal,
    Runtimes,
    Variation,
    target,
)
from adaptor_experiments.ricciardi.production import CONTROLLERS, Controller, Production
from adaptor_experiments.tables import Mean, Runs, grouped_bars, texts

PAPER_RUNS = 5
"""Runs of each cell in the paper (§4). The further ones show what chance does."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    runs: int = 50
    """Runs of each cell; the first five are the experiment of the paper."""
    tasks: int = TASKS

    def runs_of(self, cell: Cell) -> int:
        """Runs of this cell: those that show a reason need few, and without spread all runs are alike."""
        most: dict[Variation, int] = {"printed": self.runs, "no spread": 1, "more tasks": PAPER_RUNS}
        return most[cell.variation]


class Run(Cell, frozen=True, kw_only=True):
    """One production of a cell: a line of the results."""

    run: int
    time: float
    """Per cent of the target, or of what the paper's plan promises for the target cost."""
    cost: float
    """Per cent of the target, or of what the paper's plan promises for the target time."""
    steps: int
    """Decisions."""

    @property
    def reached(self) -> float:
        """Per cent of the target."""
        return self.time if self.goal == "time" else self.cost

    @property
    def other(self) -> float:
        """Per cent of what was to be minimised, as the plan promised it."""
        return self.cost if self.goal == "time" else self.time


def cells() -> list[Cell]:
    """Cells of both figures, by each allocation; then those that show why the paper's misses its targets."""
    figures = [
        Cell(table, count, goal, flavour, change)
        for change in CHANGES
        for table in TABLES
        for count in COUNTS
        for goal in GOALS
        for flavour in FLAVOURS
    ]
    reasons = [
        msgspec.structs.replace(cell, variation=variation)
        for cell in figures
        for variation in VARIATIONS[1:]
        if cell.flavour == "paper" and cell.change == "task"
    ]
    return figures + reasons


class Piece(msgspec.Struct, frozen=True):
    """All runs of a cell."""

    cell: Cell
    settings: Settings

    @property
    def name(self) -> str:
        return "-".join(map(str, msgspec.structs.astuple(self.cell)))


def pieces(settings: Settings) -> list[Piece]:
    return [Piece(cell, settings) for cell in cells()]


def run_piece(piece: Piece) -> list[Run]:
    settings = piece.settings
    return [run_once(piece.cell, settings, number) for number in range(settings.runs_of(piece.cell))]


def run_once(cell: Cell, settings: Settings, number: int) -> Run:
    resources, tasks = cell.resources, cell.tasks(settings.tasks)
    wanted = target(resources, cell.goal, tasks)
    delta = max(resource.seconds for resource in resources)
    runtimes = Runtimes(resources, [settings.seed, number], cell.change, delta)
    controller: Controller = CONTROLLERS[cell.flavour](resources, wanted, delta)
    outcome = Production(resources, runtimes, tasks).run(controller)
    return Run(
        **msgspec.structs.asdict(cell),
        run=number,
        time=100 * outcome.seconds / wanted.seconds,
        cost=100 * outcome.credits / wanted.credits,
        steps=outcome.steps,
    )


WITHIN = 2.0  # per cent, of the target that is to be met on average
_KINDS = {1: "stable resources", 2: "unstable resources"}
_WIDTH = 0.26


def report_of(runs: Runs[Run], settings: Settings, folder: Path) -> Report:
    """Raises ReplayError: a figure cannot be written."""
    return texts("ricciardi").report(
        (_reached(runs, flavour) for flavour in reversed(FLAVOURS)),
        [_figure(runs, table, folder / "figures") for table in TABLES],
        [
            _bars(runs),
            *(_targets(runs, table, change) for change in CHANGES for table in TABLES),
            parameters(settings),
        ],
        settings=settings,
        first=PAPER_RUNS,
        others=settings.runs - PAPER_RUNS,
    )


def of(
    runs: Runs[Run],
    table: int,
    goal: Goal,
    flavour: Flavour,
    change: Change = "task",
    variation: Variation = "printed",
) -> Runs[Run]:
    return runs.where(table=table, goal=goal, flavour=flavour, change=change, variation=variation)


def _bars(runs: Runs[Run]) -> Exhibit:
    """Each bar of Figs 1 and 2: what the paper says of it, ours by its equations, and the reason."""
    said = texts("ricciardi").tables["paper-figures"].rows
    rows = []
    for figure, goal, quotation, reason in said:
        table = int(figure[-1])
        printed, calm, more = (
            of(runs, table, goal, "paper", variation=variation)  # type: ignore[arg-type]
            for variation in ("printed", "no spread", "more tasks")
        )
        for count in COUNTS:
            every = printed.where(count=count)
            groups = (Runs(every[:PAPER_RUNS]), every, calm.where(count=count), more.where(count=count))
            means = (f"{group.mean('reached'):.1f} %" for group in groups)
            rows.append([figure, goal, str(count), quotation, *means, reason])
    return texts("ricciardi").exhibit("paper-figures", rows, first=PAPER_RUNS, more=MORE)


def _targets(runs: Runs[Run], table: int, change: Change) -> Exhibit:
    """Per cent of the target by each allocation, and of what was minimised besides."""
    headings = [f"{name}{what}" for what in (f", {PAPER_RUNS} runs", "", ": besides") for name in FLAVOURS]
    rows = []
    for goal in GOALS:
        for count in COUNTS:
            every = [of(runs, table, goal, flavour, change).where(count=count) for flavour in FLAVOURS]
            first = [f"{Runs(some[:PAPER_RUNS]).mean('reached'):.1f} %" for some in every]
            others = [Runs(some[PAPER_RUNS:]) for some in every]
            spreads = [some.spread("reached").shown(unit=" %") if some else "-" for some in others]
            besides = [some.spread("other").shown(unit=" %") for some in every]
            rows.append([goal, str(count), *first, *spreads, *besides])
    return texts("ricciardi").exhibit(f"table-{table}-{change}", rows, headings)


def parameters(settings: Settings) -> Exhibit:
    """Each number of Tables 1 and 2, and those of §4."""
    ours = {
        f"table {table} {resource.name}": f"{resource.processors}, {resource.seconds}, {resource.cost},"
        f" {resource.sigma}"
        for table, resources in TABLES.items()
        for resource in resources
    }
    ours |= {
        "tasks": f"{settings.tasks:,}",
        "runs": f"{PAPER_RUNS}, and {settings.runs - PAPER_RUNS} others",
        "resources": ", ".join(map(str, COUNTS)),
        "drawn": f"normal, drawn again below {LEAST:.0%} of T_ST",
        "charging": f"by {SECOND:g} s",
    }
    rows = texts("ricciardi").compared(ours)
    return texts("ricciardi").exhibit("paper-parameters", [row[:5] for row in rows])


def _reached(runs: Runs[Run], flavour: Flavour) -> str:
    """The targets of the unstable resources by an allocation, a draw for each task."""
    found = {goal: of(runs, 2, goal, flavour) for goal in GOALS}
    means = {goal: some.mean("reached") for goal, some in found.items()}
    single = [group.mean("reached") for some in found.values() for group in some.by("count").values()]
    within = all(abs(mean - 100) <= WITHIN for mean in means.values())
    return texts("ricciardi").say(
        "reached",
        flavour=flavour,
        time=means["time"],
        cost=means["cost"],
        within="within" if within else "not within",
        most=WITHIN,
        worst=max(abs(mean - 100) for mean in single),
    )


def _figure(runs: Runs[Run], table: int, folder: Path) -> Drawing:
    panels = Panels(len(GOALS))
    for axes, goal in zip(panels.plots, GOALS, strict=True):
        series: dict[str, list[Mean]] = {
            flavour: [of(runs, table, goal, flavour).where(count=count).spread("reached") for count in COUNTS]
            for flavour in FLAVOURS
        }
        grouped_bars(axes, [f"{count} resources" for count in COUNTS], series, _WIDTH, capsize=3)
        axes.axhline(100, color="black", linewidth=0.8)
        axes.set(ylim=(90, 115), title=f"target {goal}")
    panels.first.set_ylabel("per cent of the target")
    caption = f"Fig. {table}: targets reached on {_KINDS[table]}; bars: standard deviation of the runs"
    return panels.save(folder / f"figure-{table}.svg", caption, legend=True)


EXPERIMENT = Experiment(row=Run, run=run_piece, plan=planned(Settings, pieces, report_of))
