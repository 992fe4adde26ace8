"""The tables, the figure and the page of the check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.forecast.estimate import CONFIDENCE
from adaptor_experiments.figures import exhibits
from adaptor_experiments.figures.canvas import Drawing, save
from adaptor_experiments.figures.exhibits import Exhibit
from adaptor_experiments.forecasts.coverage import LEAST, Promise, coverage, promises
from adaptor_experiments.forecasts.paid_bags import BAG, MOMENTS, WAYS, Settings
from adaptor_experiments.forecasts.row import WHATS, Row
from adaptor_experiments.tables import Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_report(rows: Sequence[Row], settings: Settings, folder: Path) -> exhibits.Report:
    """Write `runs.csv`, a CSV for each table, the figure and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    runs, found = Runs(rows), promises(rows)
    exhibits.write_runs(runs, folder / "runs.csv")
    report = exhibits.Report(
        title="How often the forecasts of adaptor status hold",
        conclusion=conclusion(found),
        drawings=[_figure(runs, folder / "figures/coverage.svg")],
        setting=(
            f"Bags of {len(settings.bags)} kinds, {settings.orders} orders of each, of seed {settings.seed},"
            " are run at a simulated site by the broker, the planner and the ledger of the daemon, in the"
            " random order that a bag with a budget has, unless order=file is said. By turns they are bought"
            " for as cheap or by a budget alone, charged by the minute or by the hour. The forecast is that"
            " of the function that adaptor status prints, compared with what the bag costs in the end and"
            " when it ends."
        ),
        exhibits=tables(runs),
    )
    exhibits.write_report(report, folder)
    return report


def conclusion(found: Sequence[Promise]) -> tuple[str, ...]:
    return tuple(f"{each.verdict:8}  {each.text}: {each.found}" for each in found)


def tables(runs: Runs[Row]) -> list[Exhibit]:
    return [_by_bag(runs), _by_way(runs, "coverage"), _by_way(runs, "width")]


def _by_bag(runs: Runs[Row]) -> Exhibit:
    """A line for each kind of bag: how often the intervals hold, and how wide they are."""
    bags = runs.by("bag")
    lines = []
    for key, some in bags.items():
        line = [BAG[key].title]
        for what in WHATS:
            each = coverage(some, what, 2 * len(bags))
            line += [str(each), f"{each.width:.0%}", f"{each.wide:.0%}"]
        lines.append(line)
    return Exhibit(
        name="bags",
        title="How often the 90 % interval holds, and how wide it is",
        headings=("bag", *(each for what in WHATS for each in (what, "median width", "nine in ten below"))),
        rows=lines,
        remarks=(
            f"The promise: {LEAST:.0%} at least of the intervals hold for each kind of bag, but for a sorted"
            " one with order=file: its first tasks are no sample of the others, and adaptor status says so"
            " beside the forecast.",
            "In brackets: what chance leaves open, 95 % for the whole table. The orders are the samples, as"
            " the forecasts for one order are about tasks of the same runtimes. A promise counts as not kept"
            " only where such an interval excludes it, and as open where a share is below it all the same.",
            "Widths are shares of what the bag cost, and of the time that it took from its submission.",
        ),
    )


def _by_way(runs: Runs[Row], name: str) -> Exhibit:
    """A line for each kind of bag and way of buying, by moment: shares that hold, or median widths."""
    lines = []
    for key, of_bag in runs.by("bag").items():
        for way in WAYS:
            some = of_bag.where(where=way.title)
            made = [coverage(some.where(moment=when), what) for when in MOMENTS if some for what in WHATS]
            shown = (f"{each.width if name == 'width' else each.share.value:.0%}" for each in made)
            lines.append([BAG[key].title, way.title, *shown])
    return Exhibit(
        name=name,
        title={
            "coverage": "Forecasts whose 90 % interval holds, by finished tasks when they are made",
            "width": "Median width of the 90 % interval, by finished tasks when they are made",
        }[name],
        headings=("bag", "bought for, unit", *(f"{what}, {when}" for when in MOMENTS for what in WHATS)),
        rows=lines,
    )


def _figure(runs: Runs[Row], path: Path) -> Drawing:
    bags = runs.by("bag")
    places = range(len(bags))

    def draw(plots: Sequence[Axes]) -> None:
        for axes, what in zip(plots, WHATS, strict=True):
            found = [coverage(some, what, 2 * len(bags)) for some in bags.values()]
            shares = [each.share for each in found]
            bars = list(zip(*(share.bars for share in shares), strict=True))
            axes.errorbar([share.value for share in shares], places, xerr=bars, fmt="o", elinewidth=1)
            axes.axvline(LEAST, color="black", linestyle="--", linewidth=0.8)
            axes.axvline(CONFIDENCE, color="black", linewidth=0.8)
            axes.set_title(what)
            axes.set_xlabel(f"forecasts that hold (dashed: the promise of {LEAST:.0%})")
            axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            axes.set_yticks(places, [BAG[key].title for key in bags])
        plots[0].invert_yaxis()

    return save(path, "Forecasts whose 90 % interval holds (bars: 95 %)", len(WHATS), draw, sharey=True)
