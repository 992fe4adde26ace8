"""The figures and the page of the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adaptor.figures import exhibits
from adaptor.figures.canvas import Drawing, save
from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.bats.campaign import Run
from adaptor_experiments.bats.design import BUDGETS, KINDS, SAMPLERS, SITES, WAYS, BudgetName, Settings
from adaptor_experiments.bats.findings import findings, verdicts
from adaptor_experiments.bats.printed import compared, left_out
from adaptor_experiments.bats.tables import TITLES, conclusion, of, tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 0.16


def write_report(runs: Sequence[Run], settings: Settings, folder: Path) -> list[Exhibit]:
    """Write `runs.csv`, the tables, the figures and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    made = [findings(runs), *tables(runs), compared(settings), left_out()]
    exhibits.write_runs(runs, folder / "runs.csv")
    drawings = [_figure(runs, budget, folder / "figures") for budget in BUDGETS]
    machines = "; ".join(
        f"{site.machines} {site.name} machines of speed {site.speed:g} at {site.price:g} credits an hour"
        for site in SITES
    )
    setting = (
        f"{settings.bags} bags of each kind, {settings.tasks:,} tasks each, in {settings.runs} orders, random"
        f" numbers of seed {settings.seed}. {machines}; begun hours are charged whole. The slides name kinds,"
        " numbers and ways; sites and parameters of the bags are ours, as they give none. Runtimes are"
        f" learned from a compact sample on {SAMPLERS} machines of each kind. What that costs counts towards"
        " the budget, its tasks are done, and the hours that are paid when it is over serve the rest; times"
        " begin then. Means ± standard deviations of the runs."
    )
    report = exhibits.Report(
        title="The tail phase of BaTS (Oprescu, Kielmann)",
        conclusion=(*conclusion(runs), *verdicts(runs)),
        drawings=drawings,
        setting=setting,
        exhibits=made,
    )
    exhibits.write_report(report, folder)
    return made


def _figure(runs: Sequence[Run], budget: BudgetName, folder: Path) -> Drawing:
    def draw(plots: Sequence[Axes]) -> None:
        axes = plots[0]
        for place, way in enumerate(WAYS):
            _bars(axes, [of(runs, kind, budget, way) for kind in KINDS], place, TITLES[way])
        axes.axhline(100, color="black", linewidth=0.8)
        axes.set_xticks(range(len(KINDS)), KINDS)
        axes.set_ylabel("time, per cent of that without a tail phase")
        axes.set_ylim(80, 110)

    name = budget.replace(" %", "").replace(" +", "-plus-")
    caption = f"The ways to end a bag, {budget} budget (low is good; bars: standard deviation)"
    return save(folder / f"tail-{name}.svg", caption, 1, draw, legend=True)


def _bars(axes: Axes, by_kind: list[list[Run]], place: int, label: str) -> None:
    values = [[run.relative for run in some] for some in by_kind]
    axes.bar(
        np.arange(len(values)) + (place - (len(WAYS) - 1) / 2) * _WIDTH,
        [float(np.mean(each)) for each in values],
        _WIDTH,
        yerr=[float(np.std(each)) for each in values],
        label=label,
        color=f"C{place}",
        error_kw={"linewidth": 0.7},
    )
