"""Plain tables: aligned columns without lines, so that other programs can cut them too.

Not rich's: importing that costs a sixth of the time that `adaptor status` may take, and it lays out
some 20,000 cells a second, which is half a minute for the results of 100,000 tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from adaptor.api.fields import Meaning, meanings
from adaptor.cli.words import clock, coloured, duration, printable, size


class Figure(str):
    """A cell with a number: its column is aligned to the right."""

    __slots__ = ()


class StateWord(str):
    """A cell in the colour of its state."""

    __slots__ = ()


Columns = Mapping[str, str | Callable[[Any], str]]
"""By title: the field of a view, shown as its type says, or the cell that a function makes of the view."""


def table(views: Sequence[msgspec.Struct], columns: Columns) -> Iterator[str]:
    """The lines of a table of views, as `layout` makes them."""
    return layout(list(columns), [cells(view, columns) for view in views])


def cells(view: msgspec.Struct, columns: Columns) -> list[str]:
    """One row; empty cells for fields that the view does not have."""
    said = meanings(type(view))
    return [
        _cell(getattr(view, column), said[column])
        if isinstance(column, str) and column in said
        else column(view)
        if callable(column)
        else ""
        for column in columns.values()
    ]


def _cell(value: Any, meaning: Meaning) -> str:
    match meaning:
        case Meaning.TIME:
            return clock(value)
        case Meaning.DURATION:
            return Figure(duration(value))
        case Meaning.BYTES:
            return Figure(size(value))
        case Meaning.COUNT:
            return Figure("-" if value is None else value)
        case Meaning.STATE:
            return StateWord(value)
    return "-" if value is None else str(value)


def layout(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table: a title line, then the rows.

    A cell may hold any text: what could move a terminal's cursor is replaced.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *shown, strict=True)]
    right = [any(isinstance(cell, Figure) for cell in column) for column in zip(*rows, strict=True)]
    right = right or [False] * len(titles)
    yield _line(titles, titles, widths, right)
    for row, texts in zip(rows, shown, strict=True):
        yield _line(row, texts, widths, right)


def _line(row: Sequence[str], texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    line = []
    for cell, text, width, to_the_right in zip(row, texts, widths, right, strict=True):
        padded = text.rjust(width) if to_the_right else text.ljust(width)
        line.append(coloured(padded, text) if isinstance(cell, StateWord) else padded)
    return "  ".join(line).rstrip()
