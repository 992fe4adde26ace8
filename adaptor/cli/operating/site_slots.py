"""`adaptor site slots`: what a request could take now, and later, without delaying anyone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from adaptor import views
from adaptor.cli.client import ask
from adaptor.cli.json_output import print_json
from adaptor.cli.operating.slots_picture import picture, screen_width
from adaptor.cli.options import config_option, json_option, no_such_site
from adaptor.cli.table import layout
from adaptor.cli.words import clock, plural, printable
from adaptor.errors import NoDaemonError
from adaptor.protocol import control
from adaptor.units import format_duration

_TIMEOUT = 90.0
"""Seconds for the daemon's answer; it asks the scheduler first, which may be slow."""


@click.command()
@click.argument("names", nargs=-1, metavar="[SITE]...")
@click.option("--png", metavar="FILE", help="Draw the picture into a file (needs matplotlib).")
@click.option("--svg", metavar="FILE", help="The same as SVG.")
@config_option
@json_option
def slots(names: tuple[str, ...], png: str | None, svg: str | None, config: str | None, as_json: bool) -> int:
    """Show free slots: how many processors, from when, for how long.

    Each line is one hole and the largest request that takes it without delaying anyone. Holes overlap
    where one is wide and short and another narrow and long. Asks the schedulers now, through the
    daemon if one is running. Exit code 1: a queue could not be read.

    \b
    Examples:
      adaptor site slots
      adaptor site slots hpc --png slots.png
    """
    found = _read(names, config)
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


def _read(names: Sequence[str], config: str | None) -> list[views.SlotsView]:
    try:
        return ask(control.GetSlots(list(names)), control.Slots, timeout=_TIMEOUT).sites
    except NoDaemonError:
        click.echo("adaptor: no daemon is running; asking the schedulers from here", err=True)
        return _read_here(names, config)


def _read_here(names: Sequence[str], config: str | None) -> list[views.SlotsView]:
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
    return [read_site(name, sites[name]) for name in names or sites]


def _lines(found: Sequence[views.SlotsView]) -> Iterable[str]:
    for number, site in enumerate(found):
        if number:
            yield ""
        if site.problem:
            yield f"{site.site}: {printable(site.problem)}"
            continue
        free = site.free[0].processors if site.free else 0
        yield (
            f"{site.site}: {free} of {plural(site.processors, 'processor')} free now "
            f"({clock(site.observed, site.observed)})"
        )
        yield from slots_lines(site)
        yield ""
        yield from picture(site, screen_width())


_TITLES = ("processors", "start", "until", "duration", "request")


def slots_lines(site: views.SlotsView) -> Iterator[str]:
    """A title and a line for each free slot, the earliest first."""
    if not site.slots:
        yield "no free slot in the queue"
        return
    yield from layout(_TITLES, [_row(slot, site.observed or 0.0) for slot in site.slots])


def _row(slot: views.SlotView, now: float) -> tuple[str, ...]:
    span = "unlimited" if slot.end is None else format_duration(slot.end - slot.start)
    return (
        str(slot.processors),
        "now" if slot.start <= now else clock(slot.start, now),
        "-" if slot.end is None else clock(slot.end, now),
        span,
        "none fits" if slot.p is None or slot.tr is None else f"{slot.p} × {format_duration(slot.tr)}",
    )
