"""`adaptor site slots`: what a request could take now, and later, without delaying anyone."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from adaptor import api
from adaptor.cli.options import chosen_task, config_option, json_option, no_such_site, size_options
from adaptor.cli.printing import Columns, clock, plural, print_json, print_lines, printable, table
from adaptor.client.asking import SCHEDULERS_TIMEOUT, ask
from adaptor.errors import NoDaemonError
from adaptor.resources import TaskSize
from adaptor.units import format_duration


@click.command(short_help="Show free slots: how many processors, from when.")
@size_options
@click.argument("names", nargs=-1, metavar="[SITE]...")
@config_option
@json_option
def slots(names: tuple[str, ...], config: str | None, as_json: bool, **sizes: Any) -> int:
    """Show free slots: how many processors, from when, for how long.

    Each line is one hole and the largest request that takes it without delaying anyone. Holes overlap
    where one is wide and short and another narrow and long. Asks the schedulers now, through the
    daemon if one is running. Exit code 1: a queue could not be read.

    \b
    Examples:
      adaptor site slots
      adaptor site slots hpc --cpus 3 --mem 8G --gpus 1
    """
    found = _read(names, config, chosen_task(**sizes))
    if as_json:
        print_json(found)
    else:
        print_lines(_lines(found))
    return int(any(site.problem for site in found))


def _read(names: Sequence[str], config: str | None, task: TaskSize | None) -> list[api.SlotsView]:
    """Holes of sites, from the daemon or as it would find them.

    Raises ConfigError: the configuration is at fault; UsageError: it has no such site.
    """
    try:
        return ask(api.GetSlots(list(names), task), timeout=SCHEDULERS_TIMEOUT)
    except NoDaemonError:
        click.echo("adaptor: no daemon is running; asking the schedulers from here", err=True)
    from adaptor.config.loading import config_path, load_config
    from adaptor.daemon.slots_view import read_site

    sites = load_config(config_path(config)).sites
    for name in names:
        if name not in sites:
            raise no_such_site(name, sites)
    return [each for name in names or sites for each in read_site(name, sites[name], task)]


def _lines(found: Sequence[api.SlotsView]) -> Iterable[str]:
    for number, site in enumerate(found):
        if number:
            yield ""
        if site.problem:
            yield f"{place_of(site)}: {printable(site.problem)}"
            continue
        free = site.free[0].processors if site.free else 0
        gpus = [f", {each.free} of {plural(each.total, f'{each.type} GPU'.strip())}" for each in site.gpus]
        yield (
            f"{place_of(site)}: {free} of {plural(site.processors, 'processor')}{''.join(gpus)} free now "
            f"({clock(site.observed, site.observed)})"
        )
        if site.no_room:
            yield f"no such task can ever run there: {site.no_room}"
            continue
        yield from slots_lines(site)
        yield ""
        yield from picture(site, shutil.get_terminal_size().columns)


def place_of(site: api.SlotsView) -> str:
    """The site, with its partition where it has several."""
    return f"{site.site}/{site.partition}" if site.partition else site.site


def slots_lines(site: api.SlotsView) -> Iterator[str]:
    """A title and a line for each free slot, the earliest first."""
    if not site.slots:
        yield "no free slot in the queue"
        return
    now = site.observed or 0.0
    # A hole that no request fits in, as of different nodes at each instant, says nothing to a reader.
    shown = [slot for slot in site.slots if slot.p is not None] or site.slots
    columns: Columns = {
        "processors": "processors",
        "start": lambda slot: "now" if slot.start <= now else clock(slot.start, now),
        "until": lambda slot: clock(slot.end, now),
        "duration": lambda slot: "unlimited" if slot.end is None else format_duration(slot.end - slot.start),
        "request": _request,
    }
    if site.task is not None:
        columns = {**columns, "tasks": lambda slot: str(slot.tasks or 0)}
    yield from table(shown, columns)


def _request(slot: api.SlotView) -> str:
    return "none fits" if slot.p is None or slot.tr is None else f"{slot.p} × {format_duration(slot.tr)}"


HEIGHT = 8  # lines of the picture, at most
_NARROWEST, _WIDEST = 20, 160
_LEAST_SPAN = 3600.0
_MOST_SPAN = 14 * 86400.0
"""Seconds of the picture: a reservation of a year would make all else too narrow to be seen."""


def picture(site: api.SlotsView, width: int) -> Iterator[str]:
    """One line per few processors, one column per stretch of time; filled: that many processors are free.

    A column shows the fewest that are free at any instant of its stretch, so what looks like a hole is
    one. The last column stands for all time to come.
    """
    if not site.free:
        return
    lines = min(HEIGHT, max(1, site.processors))
    levels = [math.ceil(site.processors * (line + 1) / lines) for line in range(lines)]
    margin = max(len(str(level)) for level in levels) + 1
    columns = min(_WIDEST, max(_NARROWEST, width - margin - 1))
    now = site.free[0].time
    last = max(step.time for step in site.free if step.time <= now + _MOST_SPAN)
    span = max(_LEAST_SPAN, (last - now) * 1.15)
    edges = [now + span * column / columns for column in range(columns)]
    lowest = [
        _fewest(site.free, start, end) for start, end in zip(edges, [*edges[1:], math.inf], strict=True)
    ]
    mark = _mark()
    for level in reversed(levels):
        filled = "".join(mark if free >= level else "·" if level == levels[0] else " " for free in lowest)
        yield f"{level:>{margin - 1}} {filled}".rstrip()
    line = ""
    for column in range(0, columns, 20):
        label = clock(edges[column], edges[0])
        if column + len(label) <= columns:
            line = line.ljust(column) + label
    yield " " * margin + line


def _fewest(free: Sequence[api.FreeStep], start: float, end: float) -> int:
    ends = [*(step.time for step in free[1:]), math.inf]
    return min(
        step.processors for step, until in zip(free, ends, strict=True) if step.time < end and start < until
    )


def _mark() -> str:
    try:
        "█·".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "#"
    return "█"
