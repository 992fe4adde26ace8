"""`adaptor pilot list`: requests that were submitted."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.command_groups import show_help
from adaptor.cli.json_output import print_json
from adaptor.cli.options import json_option
from adaptor.cli.pilot_table import pilot_lines
from adaptor.cli.reader import Reader


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
