"""Output of commands: views as plain tables, or as the one JSON value of `--json`; and the files they write.

Tables are aligned columns without lines, so that other programs can cut them too. They are not rich's:
importing it costs a sixth of the time that `adaptor status` may take, and it lays out some 20,000 cells a
second: half a minute for the results of 100,000 tasks.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import msgspec

from adaptor import api
from adaptor.api.question import Meaning, meanings
from adaptor.errors import AdaptorError
from adaptor.private_files import write_atomically
from adaptor.units import format_duration, format_size

STATE_COLOURS = {
    **dict.fromkeys(("running", "open", "leased", "reshaped"), "cyan"),
    **dict.fromkeys(("done", "completed"), "green"),
    **dict.fromkeys(("failed", "node_failed", "refused", "vanished"), "red"),
    **dict.fromkeys(("walltime", "preempted", "cancelled", "withdrawn"), "yellow"),
}


def coloured(text: str, word: str) -> str:
    """The text in the colour of a state; `$NO_COLOR` is honoured, and click drops colours off a terminal."""
    colour = STATE_COLOURS.get(word)
    return click.style(text, fg=colour) if colour and not os.environ.get("NO_COLOR") else text


def printable(text: str, width: int | None = None) -> str:
    """The text with what could move a terminal's cursor replaced; cut to `width` characters."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else "\N{MIDDLE DOT}" for character in text)
    if width is not None and len(text) > width:
        text = text[: width - 1] + "…"
    return text


def clock(seconds: float | None, now: float | None = None) -> str:
    """Local `14:03:22` today, `11-21 14:03` on other days of this year, else `2026-11-21`; `-` for None."""
    if seconds is None:
        return "-"
    then, today = time.localtime(seconds), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%m-%d %H:%M" if then.tm_year == today.tm_year else "%Y-%m-%d", then)


def duration(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(seconds)


def size(count: float | None) -> str:
    return "-" if count is None else format_size(count)


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `12,000 tasks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def pilots_line(
    pilots: Sequence[api.PilotRecord], now: float | None = None, bags: Sequence[api.BagView] = ()
) -> str:
    """`2 pilots: 1 running (6 processors), 1 queued, expected to start by 14:03:22`.

    Without the start of one that only follows a running one of the same bags, or comes after the ends of all
    `bags`: these do not wait for it.
    """
    ends = [bag.forecast.end if bag.forecast is not None else None for bag in bags if bag.ended is None]
    done = max((math.inf if end is None else end.high for end in ends), default=math.inf)
    running = [pilot for pilot in pilots if pilot.state == "running"]
    queued = [pilot for pilot in pilots if pilot.state in ("queued", "submitting")]
    parts = []
    if running:
        processors = sum(pilot.holds for pilot in running)
        parts.append(f"{len(running)} running ({plural(processors, 'processor')})")
    if queued:
        parts.append(f"{len(queued)} queued{_at_several_sites(queued)}")
        starts = [
            pilot.expected
            for pilot in queued
            if pilot.expected is not None
            and pilot.expected <= done
            and not any(_follows(pilot, other) for other in running)
        ]
        if starts:
            parts.append(f"expected to start by {clock(min(starts), now)}")
    total = len(running) + len(queued)
    return f"{plural(total, 'pilot')}: {', '.join(parts)}" if parts else "no pilots"


def _at_several_sites(queued: Sequence[api.PilotRecord]) -> str:
    """Says which of several sites have pilots for the same bags; empty: only one has."""
    sites = Counter(pilot.site for pilot in queued)
    if len({(pilot.site, pilot.bag) for pilot in queued}) == len({pilot.bag for pilot in queued}):
        return ""
    places = ", ".join(f"{count} at {site}" for site, count in sites.items())
    return f" ({places}: those that start first take the tasks)"


_LAST = 0.9  # of a pilot's time, after which another is planned behind it


def _follows(queued: api.PilotRecord, running: api.PilotRecord) -> bool:
    """True if a pilot is expected to start when a running one of the same bags ends."""
    end = (running.started or running.submitted) + _LAST * running.tr
    return (queued.site, queued.bag) == (running.site, running.bag) and (queued.expected or 0) >= end


class NumberCell(str):
    """A cell with a number: its column is aligned to the right."""

    __slots__ = ()


class StateWord(str):
    """A cell in the colour of its state."""

    __slots__ = ()


Columns = Mapping[str, str | Callable[[Any], str]]
"""Fields of a view by title, shown as their types say, or functions that make the cell of a view."""


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
            return NumberCell(duration(value))
        case Meaning.BYTES:
            return NumberCell(size(value))
        case Meaning.COUNT:
            return NumberCell("-" if value is None else value)
        case Meaning.STATE:
            return StateWord(value)
    return "-" if value is None else str(value)


class _Column(msgspec.Struct):
    place: int
    width: int
    kinds: frozenset[type]  # of its cells
    empty: bool  # whether no cell says anything


_NOTHING = frozenset(("-", "0", "any", ""))  # cells that say nothing
_GAP, _MORE = "  ", "…"
_SHORTEST = 12  # characters that a text keeps at least when a table is fitted to a terminal


def terminal_width() -> int | None:
    """The columns of the terminal that stdout is; None: it is none, so lines may be long."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def layout(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> Iterator[str]:
    """The lines of a table: a title line, then the rows.

    A cell may hold any text: what could move a terminal's cursor is replaced. A table that is wider than
    `width` (default: the terminal's) loses columns that say nothing, then the end of its longest text, then
    its last columns, except states. Its title line ends in `…` if columns are missing.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    columns = [
        _Column(
            place,
            max(len(title), *(len(texts[place]) for texts in shown), 0),
            frozenset(type(row[place]) for row in rows),
            all(texts[place] in _NOTHING for texts in shown),
        )
        for place, title in enumerate(titles)
    ]
    room = width or terminal_width()
    kept = columns if room is None else _fitted(columns, room)
    more = f"{_GAP}{_MORE}" if len(kept) < len(columns) else ""
    yield _line(titles, titles, kept) + more
    for row, texts in zip(rows, shown, strict=True):
        yield _line(row, texts, kept)


def _fitted(columns: Sequence[_Column], room: int) -> list[_Column]:
    """The columns that fit into `room` characters, the first one at least."""
    kept = list(columns)

    def excess() -> int:
        gaps = len(_GAP) * (len(kept) - 1) + (len(_GAP + _MORE) if len(kept) < len(columns) else 0)
        return sum(column.width for column in kept) + gaps - room

    for column in reversed(columns[1:]):
        if excess() > 0 and column.empty:
            kept.remove(column)
    texts = [column for column in kept if not column.kinds & {NumberCell, StateWord}]
    longest = max(texts, key=lambda column: column.width, default=kept[0])
    whole = longest.width
    longest.width = min(whole, _SHORTEST)
    for column in reversed(kept[1:]):
        if excess() > 0 and StateWord not in column.kinds:
            kept.remove(column)
    longest.width = min(whole, max(longest.width, longest.width - excess()))
    return kept


def _line(row: Sequence[str], texts: Sequence[str], columns: Sequence[_Column]) -> str:
    line = []
    for column in columns:
        cell, text = row[column.place], printable(texts[column.place], column.width)
        padded = text.rjust(column.width) if NumberCell in column.kinds else text.ljust(column.width)
        line.append(coloured(padded, text) if isinstance(cell, StateWord) else padded)
    return _GAP.join(line).rstrip()


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines for people; on a terminal, lines that are longer are broken between words."""
    width = terminal_width()
    for line in lines:
        if err or width is None or len(click.unstyle(line)) <= width:
            click.echo(line, err=err)
            continue
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        for part in textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ):
            click.echo(part)


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Writes a file that the user has named. Raises AdaptorError: it cannot be written."""
    try:
        yield
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file in one step, so that its readers see all of it or none. Raises AdaptorError."""
    with writing(path):
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        write_atomically(path, content, temporary=temporary, mode=mode)


def print_json(value: Any) -> None:
    """Print views, or lists and dictionaries of views, as one value: durations in seconds as floats, times in
    ISO 8601 (UTC)."""
    print_figures(readable(value))


def print_figures(value: Any) -> None:
    """Print one value unchanged: the times of a trace are not times of the calendar."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def readable(value: Any, meaning: Meaning = Meaning.PLAIN) -> Any:
    """Views, or lists and dictionaries of views, as `--json` has them; a meaning is that of all numbers."""
    if isinstance(value, msgspec.Struct):
        said = meanings(type(value))
        return {
            name: readable(getattr(value, name), meaning if said[name] is Meaning.PLAIN else said[name])
            for name in value.__struct_fields__
        }
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(item, meaning) for item in value]
    if value is None or meaning not in (Meaning.TIME, Meaning.DURATION):
        return msgspec.to_builtins(value)
    if not math.isfinite(value):  # the end of an interval without one
        return None
    return iso_time(value) if meaning is Meaning.TIME else float(value)


def iso_time(seconds: float) -> str:
    """Time in ISO 8601, from epoch seconds: `2026-11-21T08:04:00.000Z`."""
    text = datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
