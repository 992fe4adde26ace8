"""The tables, the figures and the page of the experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.ricciardi.campaign import PAPER_RUNS, Run, Settings, pieces, run_piece
from adaptor_experiments.ricciardi.design import (
    CHANGES,
    COUNTS,
    FLAVOURS,
    GOALS,
    LEAST,
    MORE,
    SECOND,
    TABLES,
    Change,
    Flavour,
    Goal,
    Variation,
)
from adaptor_experiments.tables import Runs, grouped_bars, texts

if TYPE_CHECKING:
    pass

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
        series = {
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
