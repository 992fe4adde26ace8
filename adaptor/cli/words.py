"""Numbers and states in the words that people read: times of day, exit codes, signals, colours."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import click

from adaptor import api
from adaptor.units import format_duration, format_size

STATE_COLOURS = {
    "running": "cyan",
    "open": "cyan",
    "leased": "cyan",
    "done": "green",
    "completed": "green",
    "failed": "red",
    "node_failed": "red",
    "refused": "red",
    "vanished": "red",
    "walltime": "yellow",
    "preempted": "yellow",
    "cancelled": "yellow",
    "withdrawn": "yellow",
    "reshaped": "cyan",
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


def pilots_line(pilots: Sequence[api.PilotRecord], now: float | None = None) -> str:
    """`2 pilots: 1 running (6 processors), 1 queued, start predicted 14:03:22`."""
    running = [pilot for pilot in pilots if pilot.state == "running"]
    queued = [pilot for pilot in pilots if pilot.state in ("queued", "submitting")]
    parts = []
    if running:
        processors = sum(pilot.p for pilot in running)
        parts.append(f"{len(running)} running ({plural(processors, 'processor')})")
    if queued:
        parts.append(f"{len(queued)} queued")
        starts = [pilot.predicted_start for pilot in queued if pilot.predicted_start is not None]
        if starts:
            parts.append(f"start predicted {clock(min(starts), now)}")
    total = len(running) + len(queued)
    return f"{plural(total, 'pilot')}: {', '.join(parts)}" if parts else "no pilots"
