"""Pilots in lines of at most 120 columns, their reasons on lines of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from adaptor import api
from adaptor.cli.table import layout
from adaptor.cli.words import clock, duration, printable

WIDTH = 120
_TITLES: tuple[str, ...] = ("pilot", "site", "job", "state", "procs", "walltime", "predicted")
_TITLES += ("started", "ended", "used", "wasted")


def pilot_lines(pilots: Sequence[api.PilotRecord], reasons: bool = False) -> Iterator[str]:
    """A title and one line for each pilot; below it what the user should know, and with `reasons` why."""
    if not pilots:
        return
    table = layout(_TITLES, [_row(pilot) for pilot in pilots])
    yield next(table)
    for pilot, line in zip(pilots, table, strict=True):
        yield line
        for label, text in (
            ("why", pilot.reason if reasons else ""),
            ("end", pilot.end_reason),
            ("note", pilot.note),
        ):
            yield from _wrapped(label, text)


def _row(pilot: api.PilotRecord) -> tuple[str, ...]:
    return (
        str(pilot.id),
        _place(pilot),
        printable(pilot.job or "-", 10),
        pilot.state,
        str(pilot.p),
        duration(pilot.tr),
        clock(pilot.predicted_start),
        clock(pilot.started),
        clock(pilot.ended),
        duration(pilot.used),
        duration(pilot.wasted),
    )


def _place(pilot: api.PilotRecord) -> str:
    """The site; where there are several, the partition too, or the donated node."""
    site, there = printable(pilot.site, 10), pilot.node or pilot.partition
    return f"{site}/{printable(there, 12)}" if there else site


def _wrapped(label: str, text: str) -> list[str]:
    if not text:
        return []
    indent = " " * 7
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent=f"{indent}{label}: ", subsequent_indent=f"{indent}  "
    )
