"""`adaptor pilot list`: pilots in lines of at most 120 columns, their reasons on lines of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import click

from adaptor import api
from adaptor.cli.command_groups import show_help
from adaptor.cli.json_output import print_json
from adaptor.cli.options import json_option
from adaptor.cli.reader import Reader
from adaptor.cli.table import Columns, table
from adaptor.cli.words import printable

WIDTH = 120


def pilot_lines(pilots: Sequence[api.PilotRecord], reasons: bool = False) -> Iterator[str]:
    """A title and one line for each pilot; below it what the user should know, and with `reasons` why."""
    if not pilots:
        return
    lines = table(pilots, _COLUMNS)
    yield next(lines)
    for pilot, line in zip(pilots, lines, strict=True):
        yield line
        for label, text in (
            ("why", pilot.reason if reasons else ""),
            ("end", pilot.end_reason),
            ("note", pilot.note),
        ):
            yield from _wrapped(label, text)


def _place(pilot: api.PilotRecord) -> str:
    """The site; where there are several, the partition too, or the donated node."""
    site, there = printable(pilot.site, 10), pilot.node or pilot.partition
    return f"{site}/{printable(there, 12)}" if there else site


_COLUMNS: Columns = {
    "pilot": "id",
    "site": _place,
    "job": lambda pilot: printable(pilot.job or "-", 10),
    "state": "state",
    "procs": "p",
    "walltime": "tr",
    "predicted": "predicted_start",
    "started": "started",
    "ended": "ended",
    "used": "used",
    "wasted": "wasted",
}


def _wrapped(label: str, text: str) -> list[str]:
    if not text:
        return []
    indent = " " * 7
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent=f"{indent}{label}: ", subsequent_indent=f"{indent}  "
    )


@click.group(invoke_without_command=True)
@click.pass_context
def pilot(ctx: click.Context) -> None:
    """Show pilots: the jobs in the queue that run your tasks."""
    show_help(ctx)


@pilot.command("list")
@click.option("--all", "ended", is_flag=True, help="Ended pilots too.")
@json_option
def list_(ended: bool, as_json: bool) -> None:
    """List the pilots that are queued or running.

    \b
    Example:
      adaptor pilot list --all
    """
    pilots = Reader().get(api.GetPilots(ended))
    if as_json:
        print_json(pilots)
        return
    for line in pilot_lines(pilots):
        click.echo(line)
    if not pilots:
        click.echo("no pilots" if ended else "no pilots queued or running; --all shows ended ones")
