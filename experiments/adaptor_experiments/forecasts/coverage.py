"""Accuracy of the intervals of the forecasts, their width, and the errors of other forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from adaptor.forecast.record import wilson
from adaptor_experiments.bootstrap import Interval, share_interval
from adaptor_experiments.forecasts.paid_bags import BAG
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
