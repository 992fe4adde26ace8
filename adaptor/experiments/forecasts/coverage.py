"""How often the intervals of the forecasts held."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor.experiments.a2ha.bags import KINDS
from adaptor.experiments.forecasts.design import BAGS, MOMENTS, PREFERENCES, UNITS, Row
from adaptor.units import format_duration

LEAST = 0.85
"""The share of the forecasts whose 90 % interval is to hold in each kind of bag."""


class Coverage(msgspec.Struct, frozen=True):
    """Of forecasts of one kind."""

    forecasts: int
    cost: float
    """The share of those whose interval holds the cost."""
    end: float
    """The same of the end."""
    cost_width: float
    """Of the interval, median, as a share of the cost."""
    end_width: float
    """The same of the end, as a share of the time from the submission."""


def coverage(rows: Sequence[Row]) -> Coverage:
    return Coverage(
        forecasts=len(rows),
        cost=float(np.mean([row.cost_holds for row in rows])),
        end=float(np.mean([row.end_holds for row in rows])),
        cost_width=float(np.median([(row.cost_high - row.cost_low) / row.cost for row in rows])),
        end_width=float(np.nanmedian([(row.end_high - row.end_low) / row.end for row in rows])),
    )


HEADINGS = ("bag", "bought for", "unit", *(f"{what}, {when}" for when in MOMENTS for what in ("cost", "end")))


def table(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each kind of bag and way of buying: the share of forecasts that hold, by moment."""
    lines = []
    for kind in BAGS:
        for prefer in PREFERENCES:
            for unit in UNITS:
                some = [
                    row
                    for row in rows
                    if (row.bag, row.prefer, row.unit) == (kind.key, prefer or "budget", unit)
                ]
                by_moment = [coverage([row for row in some if row.moment == moment]) for moment in MOMENTS]
                shares = [f"{share:.0%}" for each in by_moment for share in (each.cost, each.end)]
                lines.append([kind.title, prefer or "budget", format_duration(unit), *shares])
    return lines


class Promise(msgspec.Struct, frozen=True):
    """What users may rely on, and what was found."""

    text: str
    found: str
    kept: bool


def promises(rows: Sequence[Row]) -> list[Promise]:
    """That the intervals hold in each kind of bag, over all ways of buying and all moments."""
    by_kind = {kind.key: coverage([row for row in rows if row.bag == kind.key]) for kind in BAGS}
    every = coverage(rows)
    return [
        _promise("cost", every.cost, {key: each.cost for key, each in by_kind.items()}, every.cost_width),
        _promise("end", every.end, {key: each.end for key, each in by_kind.items()}, every.end_width),
    ]


def _promise(what: str, together: float, by_kind: dict[str, float], width: float) -> Promise:
    least = min(by_kind, key=lambda key: by_kind[key])
    return Promise(
        text=f"the {what} is in its 90 % interval in {LEAST:.0%} at least of the forecasts for each kind",
        found=(
            f"{together:.1%} of all, the least {by_kind[least]:.1%} ({KINDS[least].title});"
            f" median width {width:.0%} of the {what}"
        ),
        kept=by_kind[least] >= LEAST,
    )
