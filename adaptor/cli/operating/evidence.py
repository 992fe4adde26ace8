"""`adaptor evidence`: what a site can publish of its bags and forecasts."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.cli.printing import plural, print_figures, size, write_whole
from adaptor.client.asking import check_own_key
from adaptor.client.evidence import gathered
from adaptor.client.reading import Reader
from adaptor.private_files import PRIVATE

COMMANDS = {"export": "adaptor.cli.operating.evidence:export"}


@click.group(
    cls=LazyGroup,
    sections={"Commands": COMMANDS},
    invoke_without_command=True,
    short_help="Export how bags and forecasts went, without names.",
)
@click.pass_context
def evidence(ctx: click.Context) -> None:
    """Export how bags and forecasts went, without names."""
    show_help(ctx)


@click.command(short_help="Write it as one JSON document.")
@click.option("--output", metavar="FILE", help="Write a file that only you can read (default: print).")
def export(output: str | None) -> None:
    """Write how bags and forecasts went as one JSON document without names, for others to study.

    It holds figures of bags, requests and forecast starts, in relative times. It holds no user, account,
    host, site, partition, folder, command, job id or name of a bag. Nothing is sent: read it, then send it.

    \b
    Examples:
      adaptor evidence export | less
      adaptor evidence export --output evidence.json
    """
    check_own_key("export evidence")
    found = gathered(Reader(time.time).get)
    if output is None:
        print_figures(found)
        return
    content = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    write_whole(Path(output), content, PRIVATE)
    starts = sum(site.sums.starts for site in found.sites)
    said = [plural(len(found.bags), "bag"), plural(len(found.requests), "request"), f"{starts} starts"]
    click.echo(f"{output}: {', '.join(said)}, {size(len(content))}")
