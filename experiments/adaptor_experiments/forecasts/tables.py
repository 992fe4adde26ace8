"""How often the intervals held, how wide they were, and how far off other forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from adaptor.forecast.record import wilson
from adaptor_experiments.forecasts.row import Row, median
from adaptor_experiments.tables import Runs

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
            yield (name, moment, *_figures(some))


def _figures(rows: Sequence[Row]) -> Iterator[str]:
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
