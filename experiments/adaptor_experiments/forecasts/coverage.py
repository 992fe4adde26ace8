"""Accuracy of the intervals of the forecasts, and their width; other forecasts; the page of the check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from adaptor.forecast.estimate import CONFIDENCE
from adaptor.forecast.record import wilson
from adaptor_experiments.bootstrap import Interval, share_interval
from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.forecasts.paid_bags import BAG, MOMENTS, WAYS, Settings, pieces, run_piece
from adaptor_experiments.forecasts.row import WHATS, Row, What, median
from adaptor_experiments.tables import Runs, texts

LEAST = 0.85  # the share of the forecasts whose 90 % interval is to hold in each kind of bag
_ERROR = 0.05  # how often chance alone may say that a promise is not kept, all kinds of bags together

Verdict = Literal["kept", "open", "NOT KEPT"]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy of forecasts of one kind, of costs or of ends."""

    share: Interval
    """Share of the forecasts whose interval holds the outcome, with what chance leaves open."""
    width: float
    """Median width of the interval as a share of the outcome: of the cost, or of the time from the
    submission."""
    wide: float
    """The width that nine in ten do not exceed."""

    def __str__(self) -> str:
        share = self.share
        return f"{share.value:.1%} [{share.low:.0%}, {share.high:.0%}]"


def coverage(rows: Sequence[Row], what: What, together: int = 1) -> Coverage:
    """Accuracy of some forecasts; `together`: the number that is looked at together."""
    widths = [row.width(what) for row in rows]
    # Whether the forecasts held, by bag: all of one order are about tasks of the same runtimes.
    orders = Runs(rows).by("where", "bag", "number").values()
    return Coverage(
        share=share_interval([[row.holds(what) for row in order] for order in orders], _ERROR / together),
        width=float(np.nanmedian(widths)),
        wide=float(np.nanquantile(widths, 0.9)),
    )


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A promise to users, and what was found."""

    what: What
    together: Coverage
    by_bag: dict[str, Coverage]

    @property
    def verdict(self) -> Verdict:
        """Not kept only where the interval of a kind excludes the target: few orders say little."""
        shares = [each.share for each in self.by_bag.values()]
        if any(share.high < LEAST for share in shares):
            return "NOT KEPT"
        return "kept" if all(share.value >= LEAST for share in shares) else "open"

    def __str__(self) -> str:
        worst = min(self.by_bag, key=lambda key: self.by_bag[key].share.value)
        return texts("forecasts").say(
            "promise",
            what=self.what,
            least=LEAST,
            share=self.together.share.value,
            worst=self.by_bag[worst],
            bag=BAG[worst].title,
            width=self.together.width,
        )


def promises(rows: Sequence[Row]) -> list[Promise]:
    """Promises that the intervals hold for each kind of bag for which they are claimed, over all ways and
    moments."""
    bags = {key: some for key, some in Runs(rows).by("bag").items() if BAG[key].promised}
    return [
        Promise(
            what=what,
            together=coverage([row for row in rows if row.bag in bags], what),
            by_bag={key: coverage(some, what, 2 * len(bags)) for key, some in bags.items()},
        )
        for what in WHATS
        if bags
    ]


HEADINGS = (
    *("bags", "progress", "n", "held", "95 %", "width", "error"),
    *("planned error", "pace error", "pace missing"),
)


def table(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """One line for each moment, of all bags, then by kind, by hint and by trace."""
    runs = Runs(rows)
    hints = {"with a hint": runs.where(hint=True), "without a hint": runs.where(hint=False)}
    for name, group in {"all": runs, **runs.by("bag"), **hints, **runs.by("where")}.items():
        for moment, some in group.by("moment").items():
            yield (name, moment, *_beside_others(some))


def _beside_others(rows: Sequence[Row]) -> Iterator[str]:
    """Widths and errors as shares of the time that was left, medians."""
    held = sum(row.holds("end") for row in rows)
    low, high = wilson(held / len(rows), len(rows))
    yield str(len(rows))
    yield f"{held / len(rows):.0%}"
    yield f"{low:.0%} to {high:.0%}"
    yield f"{median([(row.end_high - row.end_low) / row.left for row in rows]):.2f}"
    for told in ("end_value", "planned", "pace"):
        yield f"{median([abs(getattr(row, told) - row.end) / row.left for row in rows]):.2f}"
    yield f"{sum(math.isnan(row.pace) for row in rows) / len(rows):.0%}"


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
