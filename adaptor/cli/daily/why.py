"""`adaptor why`: why requests were issued, withheld, withdrawn or ended."""

from __future__ import annotations

import click

from adaptor.cli.json_output import print_json
from adaptor.cli.options import json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.words import clock, printable
from adaptor.errors import UsageError
from adaptor.protocol import control


@click.command()
@selector_argument("[BAG]", required=False)
@click.option("--pilot", type=click.IntRange(min=0), metavar="N", help="Only of this pilot.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most lines to show."
)
@json_option
def why(selector: str | None, pilot: int | None, limit: int, as_json: bool) -> None:
    """Explain decisions about a bag, a pilot, or all sites.

    \b
    Examples:
      adaptor why last
      adaptor why --pilot 12
    """
    if selector is not None and pilot is not None:
        raise UsageError("BAG and --pilot are mutually exclusive")
    reader = Reader()
    bag = reader.bag(selector).id if selector is not None else None
    lines = reader.get(control.GetWhy(bag, pilot, limit), control.Why).lines
    if as_json:
        print_json(lines)
        return
    for line in lines:
        subject = line.subject if line.subject == line.site else f"{line.site} {line.subject}"
        click.echo(f"{clock(line.time)} {subject}: {line.kind}: {printable(line.text)}")
    if not lines:
        click.echo("no decisions yet")
