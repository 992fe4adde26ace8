"""Free processors over time, drawn with characters."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Sequence

from adaptor import api
from adaptor.cli.words import clock

HEIGHT = 8
"""Lines of the picture, at most."""
_NARROWEST, _WIDEST = 20, 160
_LEAST_SPAN = 3600.0
"""Seconds that are shown at least."""


def screen_width() -> int:
    return shutil.get_terminal_size().columns


def picture(site: api.SlotsView, width: int) -> Iterator[str]:
    """One line per few processors, one column per stretch of time: filled where so many are free.

    A column shows the fewest that are free at any instant of its stretch, so what looks like a hole is
    one. The last column stands for all time to come.
    """
    if not site.free:
        return
    levels = _levels(site.processors)
    margin = max(len(str(level)) for level in levels) + 1
    columns = min(_WIDEST, max(_NARROWEST, width - margin - 1))
    edges = _edges(site.free, columns)
    lowest = [
        _fewest(site.free, start, end) for start, end in zip(edges, [*edges[1:], math.inf], strict=True)
    ]
    mark = _mark()
    for level in reversed(levels):
        filled = "".join(mark if free >= level else "·" if level == levels[0] else " " for free in lowest)
        yield f"{level:>{margin - 1}} {filled}".rstrip()
    yield " " * margin + _axis(edges, columns)


def _levels(processors: int) -> list[int]:
    """The numbers of processors that the lines stand for, the last one all of them."""
    lines = min(HEIGHT, max(1, processors))
    return [math.ceil(processors * (line + 1) / lines) for line in range(lines)]


def _edges(free: Sequence[api.FreeStep], columns: int) -> list[float]:
    """Where the columns begin: from now to a little after the last change."""
    now = free[0].time
    span = max(_LEAST_SPAN, (free[-1].time - now) * 1.15)
    return [now + span * column / columns for column in range(columns)]


def _fewest(free: Sequence[api.FreeStep], start: float, end: float) -> int:
    ends = [*(step.time for step in free[1:]), math.inf]
    return min(
        step.processors for step, until in zip(free, ends, strict=True) if step.time < end and start < until
    )


def _axis(edges: Sequence[float], columns: int) -> str:
    """Times of day below the columns that they begin."""
    line = ""
    for column in range(0, columns, 20):
        label = clock(edges[column], edges[0])
        if column + len(label) <= columns:
            line = line.ljust(column) + label
    return line


def _mark() -> str:
    try:
        "█·".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "#"
    return "█"
