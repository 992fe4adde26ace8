"""The tables, the figure and the page of the check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.experiments.a2ha.bags import KINDS
from adaptor.experiments.forecasts.coverage import LEAST, Promise, coverage, promises
from adaptor.experiments.forecasts.design import BAGS, MOMENTS, PREFERENCES, UNITS, Row, Settings
from adaptor.figures import exhibits
from adaptor.figures.canvas import Drawing, save
from adaptor.figures.exhibits import Exhibit
from adaptor.units import format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEADINGS = (
    "bag",
    "bought for",
    "unit",
    *(f"{what}, {when}" for when in MOMENTS for what in ("cost", "end")),
)


def write_report(rows: Sequence[Row], settings: Settings, folder: Path) -> list[Exhibit]:
    """Write `runs.csv`, a CSV for each table, the figure and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    found = promises(rows)
    made = tables(rows, found)
    exhibits.write_runs(rows, folder / "runs.csv")
    report = exhibits.Report(
        title="How often the forecasts of adaptor status hold",
        conclusion=conclusion(found),
        drawings=[_figure(found, folder / "figures/coverage.svg")],
        setting=(
            f"Bags of {len(BAGS)} kinds, {settings.orders} orders of each, of seed {settings.seed}, are run"
            " at a simulated site by the broker, the planner and the ledger of the daemon. The forecast is"
            " made by the function that adaptor status prints, and compared with what the bag costs in the"
            " end and when it ends."
        ),
        exhibits=made,
    )
    exhibits.write_report(report, folder)
    return made


def conclusion(found: Sequence[Promise]) -> tuple[str, ...]:
    return tuple(f"{each.verdict:8}  {each.text}: {each.found}" for each in found)


def tables(rows: Sequence[Row], found: Sequence[Promise]) -> list[Exhibit]:
    return [_by_way(rows), _by_kind(found)]


def _by_way(rows: Sequence[Row]) -> Exhibit:
    """A line for each kind of bag and way of buying: the share of forecasts that hold, by moment."""
    lines = []
    for kind in BAGS:
        for prefer in PREFERENCES:
            for unit in UNITS:
                wanted = (kind.key, prefer or "budget", unit)
                some = [row for row in rows if (row.bag, row.prefer, row.unit) == wanted]
                by_moment = [coverage([row for row in some if row.moment == moment]) for moment in MOMENTS]
                shares = [f"{share:.0%}" for each in by_moment for share in (each.cost, each.end)]
                lines.append([kind.title, prefer or "budget", format_duration(unit), *shares])
    return Exhibit(
        name="coverage",
        title="Forecasts whose 90 % interval holds, by finished tasks when they are made",
        headings=_HEADINGS,
        rows=lines,
    )


def _by_kind(found: Sequence[Promise]) -> Exhibit:
    lines = []
    for kind in BAGS:
        shares = [each.by_kind[kind.key] for each in found]
        lines.append(
            [kind.title, *(f"{each.value:.1%} [{each.low:.0%}, {each.high:.0%}]" for each in shares)]
        )
    return Exhibit(
        name="kinds",
        title=f"The promises: {LEAST:.0%} at least of the intervals hold in each kind of bag",
        headings=("bag", *(each.what for each in found)),
        rows=lines,
        remarks=(
            "In brackets: what chance leaves open, 95 % for all kinds together. The orders are the samples,"
            " as the forecasts for one order are about tasks of the same runtimes. A promise counts as not"
            " kept only where such an interval excludes it, and as open where a share is below it all the"
            " same.",
        ),
    )


def _figure(found: Sequence[Promise], path: Path) -> Drawing:
    def draw(plots: Sequence[Axes]) -> None:
        places = range(len(BAGS))
        for axes, promise in zip(plots, found, strict=True):
            shares = [promise.by_kind[kind.key] for kind in BAGS]
            bars = list(zip(*(share.bars for share in shares), strict=True))
            axes.errorbar([share.value for share in shares], places, xerr=bars, fmt="o", elinewidth=1)
            axes.axvline(LEAST, color="black", linestyle="--", linewidth=0.8)
            axes.set_title(promise.what)
            axes.set_xlabel(f"forecasts that hold (dashed: the promise of {LEAST:.0%})")
            axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            axes.set_yticks(places, [KINDS[kind.key].title for kind in BAGS])
        plots[0].invert_yaxis()

    return save(path, "Forecasts whose interval holds (bars: 95 %)", len(found), draw, sharey=True)
