"""The table of one run."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.stopwatch import median_seconds

REFERENCE = 0.075
"""Seconds that it takes on the reference processor, for which the targets hold: a quiet core of 2026."""
_NUMBERS = 1_300_000
_LOOPS = 430_000


def calibration() -> float:
    """Seconds that the work takes here and now; the median of three."""
    return median_seconds(_work, 3)


def at_reference(seconds: float, calibrated: float) -> float:
    """Seconds on the reference processor of work that took `seconds` where the calibration took
    `calibrated`."""
    return seconds * REFERENCE / calibrated


def _work() -> float:
    total, seen = 0, {}
    for number in range(_LOOPS):
        total += number & 7
        seen[number & 1023] = total
    numbers = np.random.default_rng(1).random(_NUMBERS)
    return float(np.cumsum(np.sort(numbers))[-1]) + total


_HEADINGS = ("what", "measured", "calibration", "at the reference", "target")


class Row(msgspec.Struct, frozen=True):
    """One thing that was measured."""

    what: str
    measured: str
    target: str = ""
    """Goal of the project; empty: the row is only for comparison."""
    seconds: float | None = None
    """Seconds of work, which depends on the speed of the processor; None: something else was measured."""


def timed(what: str, took: float, most: float | None = None, more: str = "") -> Row:
    """A row of so many seconds of work, of which at most `most` are wanted on the reference processor."""
    measured = f"{in_words(took)}{more}"
    return Row(what, measured, "" if most is None else f"≤ {in_words(most)}", took)


def in_words(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 300 else f"{seconds / 60:.0f} min"


def show(title: str, rows: Iterable[Row]) -> None:
    """Measure and print; beside what depends on the processor stands the calibration at that time."""
    table = Table(title=title, title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, no_wrap=heading != "what")
    for row in rows:
        table.add_row(row.what, row.measured, *_compared(row), row.target)
    # Without a terminal the width is unknown, and a table cut to 80 columns loses figures.
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def _compared(row: Row) -> tuple[str, str]:
    """The calibration, and what was measured as it would be on the reference processor."""
    if row.seconds is None:
        return "", ""
    calibrated = calibration()
    return in_words(calibrated), in_words(at_reference(row.seconds, calibrated))
