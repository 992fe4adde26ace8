"""The figures and the page of the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adaptor.figures import exhibits
from adaptor.figures.canvas import Drawing, save
from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.ricciardi.campaign import Run, Settings
from adaptor_experiments.ricciardi.design import COUNTS, FLAVOURS, GOALS, TABLES
from adaptor_experiments.ricciardi.printed import bars, parameters
from adaptor_experiments.ricciardi.tables import conclusion, of, tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = {1: "stable resources", 2: "unstable resources"}
_WIDTH = 0.26


def write_report(runs: Sequence[Run], settings: Settings, folder: Path) -> list[Exhibit]:
    """Write `runs.csv`, the tables, the figures and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    made = [bars(runs), *tables(runs), parameters(settings)]
    exhibits.write_runs(runs, folder / "runs.csv")
    drawings = [_figure(runs, table, folder / "figures") for table in TABLES]
    setting = (
        f"{settings.tasks:,} tasks on 2, 3 and 4 resources; the target is the middle of the possible times or"
        f" costs, and what it leaves open is minimised. Random numbers of seed {settings.seed}; 5 runs as in"
        f" the paper, and {settings.runs - 5} others (mean ± standard deviation). “Besides” is what was"
        " minimised, in per cent of what the paper's own plan promises at the start. 100 % or less of a"
        " target is met."
    )
    report = exhibits.Report(
        title="Cost-aware allocation (Ricciardi & Hwang 2011, §4)",
        conclusion=conclusion(runs),
        drawings=drawings,
        setting=setting,
        exhibits=made,
    )
    exhibits.write_report(report, folder)
    return made


def _figure(runs: Sequence[Run], table: int, folder: Path) -> Drawing:
    def draw(plots: Sequence[Axes]) -> None:
        for axes, goal in zip(plots, GOALS, strict=True):
            _bars(axes, runs, table, goal)
        plots[0].set_ylabel("per cent of the target")

    caption = f"Fig. {table}: targets reached on {_KINDS[table]}; bars: standard deviation of the runs"
    return save(folder / f"figure-{table}.svg", caption, len(GOALS), draw, legend=True)


def _bars(axes: Axes, runs: Sequence[Run], table: int, goal: str) -> None:
    for place, flavour in enumerate(FLAVOURS):
        reached = [[run.reached for run in of(runs, table, goal, flavour, count)] for count in COUNTS]
        axes.bar(
            np.arange(len(COUNTS)) + (place - 1) * _WIDTH,
            [float(np.mean(each)) for each in reached],
            _WIDTH,
            yerr=[float(np.std(each)) for each in reached],
            label=flavour,
            color=f"C{place}",
            capsize=3,
        )
    axes.axhline(100, color="black", linewidth=0.8)
    axes.set_xticks(range(len(COUNTS)), [f"{count} resources" for count in COUNTS])
    axes.set_ylim(90, 115)
    axes.set_title(f"target {goal}")
