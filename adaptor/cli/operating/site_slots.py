"""`adaptor site slots`: what a request could take now, and later, without delaying anyone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from adaptor import api
from adaptor.cli.json_output import print_json
from adaptor.cli.operating.slots_picture import picture, screen_width
from adaptor.cli.operating.task_options import chosen_task, task_options
from adaptor.cli.options import config_option, json_option, no_such_site
from adaptor.cli.table import Columns, table
from adaptor.cli.words import clock, plural, printable
from adaptor.client.asking import ask
from adaptor.errors import NoDaemonError
from adaptor.resources import TaskSize
from adaptor.units import format_duration

_TIMEOUT = 90.0
"""Seconds for the daemon's answer; it asks the scheduler first, which may be slow."""


@click.command(short_help="Show free slots: how many processors, from when.")
@task_options
@click.argument("names", nargs=-1, metavar="[SITE]...")
@click.option("--png", metavar="FILE", help="Draw the picture into a file (needs the extra `plots`).")
@click.option("--svg", metavar="FILE", help="The same as SVG.")
@config_option
@json_option
def slots(
    names: tuple[str, ...],
    png: str | None,
    svg: str | None,
    config: str | None,
    as_json: bool,
    **sizes: Any,
) -> int:
    """Show free slots: how many processors, from when, for how long.

    Each line is one hole and the largest request that takes it without delaying anyone. Holes overlap
    where one is wide and short and another narrow and long. Asks the schedulers now, through the
    daemon if one is running. Exit code 1: a queue could not be read.

    \b
    Examples:
      adaptor site slots
      adaptor site slots hpc --png slots.png
      adaptor site slots hpc --cpus 3 --mem 8G --gpus 1
    """
    found = _read(names, config, chosen_task(**sizes))
    for file, kind in ((png, "png"), (svg, "svg")):
        if file is not None:
            from adaptor.cli.operating.slots_figure import draw_slots

            draw_slots(found, Path(file), kind)
    if as_json:
        print_json(found)
    else:
        for line in _lines(found):
            click.echo(line)
    return int(any(site.problem for site in found))


def _read(names: Sequence[str], config: str | None, task: TaskSize | None) -> list[api.SlotsView]:
    try:
        return ask(api.GetSlots(list(names), task), timeout=_TIMEOUT)
    except NoDaemonError:
        click.echo("adaptor: no daemon is running; asking the schedulers from here", err=True)
        return _read_here(names, config, task)


def _read_here(names: Sequence[str], config: str | None, task: TaskSize | None) -> list[api.SlotsView]:
    """As the daemon would read them.

    Raises:
        ConfigError: the configuration is at fault; UsageError: it has no such site.
    """
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
        yield (
            f"{place_of(site)}: {free} of {plural(site.processors, 'processor')}{_gpus(site)} free now "
            f"({clock(site.observed, site.observed)})"
        )
        if site.no_room:
            yield f"no such task can ever run there: {site.no_room}"
            continue
        yield from slots_lines(site)
        yield ""
        yield from picture(site, screen_width())


def place_of(site: api.SlotsView) -> str:
    """The site, with its partition where it has several."""
    return f"{site.site}/{site.partition}" if site.partition else site.site


def _gpus(site: api.SlotsView) -> str:
    return "".join(f", {each.free} of {plural(each.total, f'{each.type} GPU'.strip())}" for each in site.gpus)


def slots_lines(site: api.SlotsView) -> Iterator[str]:
    """A title and a line for each free slot, the earliest first."""
    if not site.slots:
        yield "no free slot in the queue"
        return
    now = site.observed or 0.0
    columns: Columns = {
        "processors": "processors",
        "start": lambda slot: "now" if slot.start <= now else clock(slot.start, now),
        "until": lambda slot: clock(slot.end, now),
        "duration": lambda slot: "unlimited" if slot.end is None else format_duration(slot.end - slot.start),
        "request": _request,
    }
    if site.task is not None:
        columns = {**columns, "tasks": lambda slot: str(slot.tasks or 0)}
    yield from table(site.slots, columns)


def _request(slot: api.SlotView) -> str:
    return "none fits" if slot.p is None or slot.tr is None else f"{slot.p} × {format_duration(slot.tr)}"
