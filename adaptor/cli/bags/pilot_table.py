"""Pilots as lines of a table: an array is one line, unless each of its pilots is asked for."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from adaptor import api
from adaptor.cli.printing import Columns, StateWord, plural, printable, table, terminal_width
from adaptor.units import folded

WIDTH = 120
_MOST_TOLD = 3  # different texts below the line of an array


class ArrayLine(msgspec.Struct, frozen=True, kw_only=True):
    """The pilots of an array in one line."""

    pilots: tuple[api.PilotRecord, ...]
    id: str
    job: str
    state: str
    p: str
    tr: api.WholeSeconds
    predicted_start: api.Time | None  # the first one of those that wait
    started: api.Time | None  # the first
    ended: api.Time | None  # the last; None: not all have ended
    used: api.Seconds
    wasted: api.Seconds

    @property
    def site(self) -> str:
        return self.pilots[0].site

    @property
    def node(self) -> str:
        return ""

    @property
    def partition(self) -> str:
        return self.pilots[0].partition


def pilot_lines(
    pilots: Sequence[api.PilotRecord], *, reasons: bool = False, each: bool = False
) -> Iterator[str]:
    """A title and one line for each pilot or array; below it what the user should know, with `reasons` why.

    `each`: one line for each pilot of an array.
    """
    if not pilots:
        return
    rows = list(pilots) if each else together(pilots)
    lines = table(rows, _COLUMNS)
    yield next(lines)
    for row, line in zip(rows, lines, strict=True):
        yield line
        members = pilots_of(row)
        yield from _below("why", [members[0].reason] if reasons else [])
        yield from _below("end", [pilot.end_reason for pilot in members])
        yield from _below("note", [pilot.note for pilot in members])


def together(pilots: Sequence[api.PilotRecord]) -> list[api.PilotRecord | ArrayLine]:
    """The pilots in their order, those of an array and of one request as one line."""
    rows: list[api.PilotRecord | ArrayLine] = []
    for (array, *_), members in groupby(pilots, lambda pilot: (pilot.array, pilot.p, pilot.tr)):
        found = tuple(members)
        rows += [_array(found)] if array is not None and len(found) > 1 else found
    return rows


def pilots_of(row: api.PilotRecord | ArrayLine) -> tuple[api.PilotRecord, ...]:
    """The pilots of a line."""
    return row.pilots if isinstance(row, ArrayLine) else (row,)


def _array(pilots: tuple[api.PilotRecord, ...]) -> ArrayLine:
    states = Counter(pilot.state for pilot in pilots)
    planned = [pilot.predicted_start for pilot in pilots if pilot.started is None and pilot.ended is None]
    ends = [pilot.ended for pilot in pilots]
    return ArrayLine(
        pilots=pilots,
        id=folded(pilot.id for pilot in pilots),
        job=next((pilot.job for pilot in pilots if pilot.job), "-"),
        state=", ".join(f"{count} {state}" for state, count in states.most_common()),
        p=f"{len(pilots)} × {pilots[0].p}",
        tr=pilots[0].tr,
        predicted_start=min((at for at in planned if at is not None), default=None),
        started=min((pilot.started for pilot in pilots if pilot.started is not None), default=None),
        ended=None if None in ends else max(at for at in ends if at is not None),
        used=sum(pilot.used for pilot in pilots),
        wasted=sum(pilot.wasted for pilot in pilots),
    )


def _below(label: str, texts: Sequence[str]) -> Iterator[str]:
    """Lines of the texts, each text once, with the number of pilots of an array that it concerns."""
    counts = Counter(text for text in texts if text)
    for text, count in counts.most_common(_MOST_TOLD):
        of = f"{plural(count, 'pilot')}: " if len(texts) > 1 else ""
        first, more = f"       {label}: ", " " * 9
        width = terminal_width() or WIDTH
        yield from textwrap.wrap(
            printable(f"{of}{text}"), width, initial_indent=first, subsequent_indent=more
        )
    if len(counts) > _MOST_TOLD:
        yield f"       {label}: {len(counts) - _MOST_TOLD} more"


def _place(row: api.PilotRecord | ArrayLine) -> str:
    """The site; where there are several, the partition too, or the donated node."""
    site, there = printable(row.site, 10), row.node or row.partition
    return f"{site}/{printable(there, 12)}" if there else site


_COLUMNS: Columns = {
    "pilot": "id",
    "site": _place,
    "job": lambda row: printable(row.job or "-", 10),
    "state": lambda row: StateWord(row.state),
    "procs": "p",
    "walltime": "tr",
    "predicted": "predicted_start",
    "started": "started",
    "ended": "ended",
    "used": "used",
    "wasted": "wasted",
}
