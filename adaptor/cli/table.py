"""Plain tables: aligned columns without lines, so that other programs can cut them too.

Not rich's: importing that costs a sixth of the time that `adaptor status` may take, and it lays out
some 20,000 cells a second, which is half a minute for the results of 100,000 tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptor.cli.words import coloured, printable

NUMBERS = frozenset(
    {"bag", "task", "pilot", "procs", "done", "running", "waiting", "failed", "cancelled", "tries"}
    | {
        "walltime",
        "mean",
        "took",
        "wall",
        "cpu",
        "memory",
        "gpu memory",
        "used",
        "wasted",
        "workers",
        "processors",
        "queued",
    }
    | {"budget", "reserved", "left", "max_pending_requests", "max_proc", "max_tr", "held", "late"}
)
"""Columns that are aligned to the right."""


def layout(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table: a title line, then the rows; states are coloured.

    A cell may hold any text: what could move a terminal's cursor is replaced.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *shown, strict=True)]
    yield _line(titles, titles, widths)
    for row in shown:
        yield _line(titles, row, widths)


def _line(titles: Sequence[str], row: Sequence[str], widths: Sequence[int]) -> str:
    cells = []
    for title, cell, width in zip(titles, row, widths, strict=True):
        padded = cell.rjust(width) if title in NUMBERS else cell.ljust(width)
        cells.append(coloured(padded, cell) if title == "state" else padded)
    return "  ".join(cells).rstrip()
