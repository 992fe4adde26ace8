"""How often the intervals held, how wide they were, and how far off other forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from adaptor.forecast.record import wilson
from adaptor_experiments.forecasts.row import Row, median

HEADINGS = (
    *("bags", "progress", "n", "held", "95 %", "width", "error"),
    *("planned error", "pace error", "pace missing"),
)


def table(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """One line for each moment, of all bags, then by kind, by hint and by trace."""
    groups: dict[str, Callable[[Row], bool]] = {"all": lambda _: True}
    for kind in dict.fromkeys(row.bag for row in rows):
        groups[kind] = lambda row, kind=kind: row.bag == kind  # type: ignore[misc]
    groups["with a hint"] = lambda row: row.hint
    groups["without a hint"] = lambda row: not row.hint
    for trace in dict.fromkeys(row.where for row in rows):
        groups[trace] = lambda row, trace=trace: row.where == trace  # type: ignore[misc]
    for name, belongs in groups.items():
        for moment in dict.fromkeys(row.moment for row in rows):
            some = [row for row in rows if belongs(row) and row.moment == moment]
            if some:
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
