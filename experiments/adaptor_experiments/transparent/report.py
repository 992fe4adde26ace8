"""The figures and the page of the experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.figures import exhibits
from adaptor.figures.canvas import Drawing, ratio_scale, save
from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.transparent.design import MACHINES, STRATEGIES, WATCHED, Settings
from adaptor_experiments.transparent.findings import conclusion
from adaptor_experiments.transparent.sample import Outcome
from adaptor_experiments.transparent.summary import Cell, summarise
from adaptor_experiments.transparent.tables import TITLES, tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^v"


def write_report(outcomes: Sequence[Outcome], settings: Settings, folder: Path) -> list[Exhibit]:
    """Write `runs.csv`, a CSV for each table, the figures (SVG and PNG) and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    cells = summarise(outcomes, settings.seed)
    made = tables(cells)
    exhibits.write_runs(outcomes, folder / "runs.csv")
    drawings = [
        _figure(cells, folder / f"figures/{name}.svg", caption, label, value, ratio=name == "speedup")
        for name, caption, label, value in (
            (
                "speedup",
                "Transparent against formal requests: above 1 it is faster (bars: 95 %)",
                "speedup: better explicit / transparent",
                lambda cell: cell.explicit["transparent"].value,
            ),
            (
                "lost",
                "Donated processor time that is lost because a local job takes the processor",
                "lost share (transparent)",
                lambda cell: cell.by["transparent"].lost / max(cell.by["transparent"].used, 1e-9),
            ),
        )
    ]
    drawings.append(_delays(cells, folder / "figures/delays.svg"))
    report = exhibits.Report(
        title="Transparent allocation beside formal requests (De Rose et al. 2008, §3 and §5)",
        conclusion=conclusion(cells),
        drawings=drawings,
        setting=_setting(outcomes, settings),
        exhibits=made,
    )
    exhibits.write_report(report, folder)
    return made


def _setting(outcomes: Sequence[Outcome], settings: Settings) -> str:
    rules = settings.donation
    samples = len({each.sample for each in outcomes})
    return (
        f"Submission times for each trace and load: {samples}; random numbers of seed {settings.seed}; "
        f"runtimes are uniform between half and three halves of the mean; max_pending_requests "
        f"{settings.max_pending}, max_tr {settings.max_tr:,} s, first tr {settings.initial_tr:,.0f} s. "
        f"useful_time {rules.useful_time:,.0f} s, fit {rules.fit:g}, last_fit {rules.last_fit:g}, patience "
        f"{rules.patience}; idle periods were watched for {WATCHED // 86400} days before. mixed makes "
        "adaptive requests; all-idle uses every idle processor (donation: choose: all)."
    )


def _figure(
    cells: Sequence[Cell],
    path: Path,
    caption: str,
    label: str,
    value: Callable[[Cell], float],
    *,
    ratio: bool,
) -> Drawing:
    def draw(plots: Sequence[Axes]) -> None:
        for axes, machine in zip(plots, shown, strict=True):
            _panel(axes, [cell for cell in cells if cell.trace == machine.key], value, ratio=ratio)
            axes.set_title(machine.title, fontsize="medium")
        for axes in plots[::2]:
            axes.set_ylabel(label)

    shown = [machine for machine in MACHINES if any(cell.trace == machine.key for cell in cells)]
    return save(path, caption, len(shown), draw, legend=True)


def _panel(axes: Axes, cells: Sequence[Cell], value: Callable[[Cell], float], *, ratio: bool) -> None:
    """A line for each number and mean of tasks, over the load; ratios with their intervals."""
    kinds = sorted({(cell.mean, cell.tasks) for cell in cells})
    means = sorted({mean for mean, _ in kinds})
    counts = sorted({tasks for _, tasks in kinds})
    for mean, tasks in kinds:
        line = sorted(
            (cell for cell in cells if (cell.mean, cell.tasks) == (mean, tasks)),
            key=lambda cell: cell.offered,
        )
        values = [value(cell) for cell in line]
        bars = [cell.explicit["transparent"].bars for cell in line]
        axes.errorbar(
            [cell.offered for cell in line],
            values,
            yerr=[[low for low, _ in bars], [high for _, high in bars]] if ratio else None,
            color=f"C{means.index(mean)}",
            marker=_MARKERS[counts.index(tasks) % len(_MARKERS)],
            markersize=4,
            linewidth=1,
            elinewidth=0.4,
            label=f"{tasks:,} × {mean:,} s",
        )
    if ratio:
        axes.axhline(1, color="black", linewidth=0.8)
        ratio_scale(axes)
    axes.set_xlabel("offered load")
    axes.xaxis.set_major_formatter(lambda load, _: f"{load:.0%}")


def _delays(cells: Sequence[Cell], path: Path) -> Drawing:
    """Hours of delay by strategy, summed over the cells of one trace and load, relative to the work."""

    def draw(plots: Sequence[Axes]) -> None:
        width = 0.8 / len(STRATEGIES)
        groups = list(dict.fromkeys((cell.trace, cell.load) for cell in cells))
        for place, name in enumerate(STRATEGIES):
            sums = [
                sum(cell.by[name].delay for cell in cells if (cell.trace, cell.load) == group)
                for group in groups
            ]
            at = width * (place - (len(STRATEGIES) - 1) / 2)
            plots[0].bar([at + group for group in range(len(groups))], sums, width, label=name)
        plots[0].set_yscale("symlog")
        labels = [f"{TITLES[trace].replace(' ', chr(10), 1)}\n×{load:g}" for trace, load in groups]
        plots[0].set_xticks(range(len(groups)), labels)
        plots[0].set_ylabel("hours by which local jobs start later")

    return save(path, "Delay of local jobs, summed over one bag of each kind", 1, draw, legend=True)
