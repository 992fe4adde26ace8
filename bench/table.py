"""The table of one run."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec
from rich.console import Console
from rich.table import Table


class Row(msgspec.Struct, frozen=True):
    """One thing that was measured."""

    what: str
    measured: str
    target: str = ""
    """What the project wants; empty where this is only for comparison."""


def show(title: str, rows: Iterable[Row]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("what", "measured", "target"):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        table.add_row(row.what, row.measured, row.target)
    # Without a terminal the width is unknown, and a table cut to 80 columns loses figures.
    Console(width=None if sys.stdout.isatty() else 110).print(table)
