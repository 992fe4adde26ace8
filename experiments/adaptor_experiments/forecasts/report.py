"""The tables, the figure and the page of the check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.forecast.estimate import CONFIDENCE
from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.forecasts.coverage import LEAST, coverage, promises
from adaptor_experiments.forecasts.paid_bags import BAG, MOMENTS, WAYS, Settings, pieces, run_piece
from adaptor_experiments.forecasts.row import WHATS, Row
from adaptor_experiments.tables import Runs, texts

if TYPE_CHECKING:
    pass


def report_of(runs: Runs[Row], settings: Settings, folder: Path) -> Report:
    """Raises ReplayError: the figure cannot be written."""
    return texts("forecasts").report(
        [f"{promise.verdict:8}  {promise}" for promise in promises(runs)],
        [_figure(runs, folder / "figures/coverage.svg")],
        [_by_bag(runs), _by_way(runs, "coverage"), _by_way(runs, "width")],
        settings=settings,
        kinds=len(settings.bags),
    )


def _by_bag(runs: Runs[Row]) -> Exhibit:
    """A line for each kind of bag: how often the intervals hold, and how wide they are."""
    bags = runs.by("bag")
    lines = []
    for key, some in bags.items():
        line = [BAG[key].title]
        for found in (coverage(some, what, 2 * len(bags)) for what in WHATS):
            line += [str(found), f"{found.width:.0%}", f"{found.wide:.0%}"]
        lines.append(line)
    return texts("forecasts").exhibit("bags", lines, least=LEAST)


def _by_way(runs: Runs[Row], name: str) -> Exhibit:
    """A line for each kind of bag and way of buying, by moment: shares that hold, or median widths."""
    lines = []
    for key, of_bag in runs.by("bag").items():
        for way in WAYS:
            some = of_bag.where(where=way.title)
            made = [coverage(some.where(moment=when), what) for when in MOMENTS if some for what in WHATS]
            shown = (f"{each.width if name == 'width' else each.share.value:.0%}" for each in made)
            lines.append([BAG[key].title, way.title, *shown])
    return texts("forecasts").exhibit(name, lines)


def _figure(runs: Runs[Row], path: Path) -> Drawing:
    bags = runs.by("bag")
    places = range(len(bags))
    panels = Panels(len(WHATS), sharey=True)
    for axes, what in zip(panels.plots, WHATS, strict=True):
        shares = [coverage(some, what, 2 * len(bags)).share for some in bags.values()]
        bars = list(zip(*(share.bars for share in shares), strict=True))
        axes.errorbar([share.value for share in shares], places, xerr=bars, fmt="o", elinewidth=1)
        axes.axvline(LEAST, color="black", linestyle="--", linewidth=0.8)
        axes.axvline(CONFIDENCE, color="black", linewidth=0.8)
        axes.set(title=what, xlabel=f"forecasts that hold (dashed: the promise of {LEAST:.0%})")
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.set_yticks(places, [BAG[key].title for key in bags])
    panels.first.invert_yaxis()
    return panels.save(path, "Forecasts whose 90 % interval holds (bars: 95 %)")


def _broken(runs: Runs[Row]) -> bool:
    return any(promise.verdict == "NOT KEPT" for promise in promises(runs))


EXPERIMENT = Experiment(row=Row, run=run_piece, plan=planned(Settings, pieces, report_of), failed=_broken)
