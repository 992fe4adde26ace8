"""`adaptor credits`: what sites and bags have used, what is reserved, what is left."""

from __future__ import annotations

import click

from adaptor import views
from adaptor.cli.credit_words import amount
from adaptor.cli.json_output import print_json
from adaptor.cli.options import json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.table import layout
from adaptor.cli.words import duration
from adaptor.protocol import control

_TITLES = ("of", "period", "budget", "used", "wasted", "reserved", "left")


@click.command()
@selector_argument("[SEL]", default="all")
@json_option
def credits(selector: str, as_json: bool) -> None:
    """Show credits: used, reserved and left, per site and per bag.

    A credit is a processor-hour unless the configuration sets another price. `wasted` is the part of
    `used` that paid for idle slots, killed attempts and losing replicas.

    \b
    Example:
      adaptor credits last
    """
    found = Reader().get(control.GetCredits(selector), control.Credits).credits
    if as_json:
        print_json(found)
        return
    if not found.sites and not found.bags:
        click.echo("no credits used yet")
        return
    for line in layout(_TITLES, [_row(each) for each in (*found.sites, *found.bags)]):
        click.echo(line)
    for price in found.prices:
        click.echo(_price(price))


def _row(line: views.CreditLine) -> tuple[str, ...]:
    of = f"bag {line.bag}" if line.bag is not None else f"site {line.site}"
    figures = (line.budget, line.used, line.wasted, line.reserved, line.left)
    return (of, line.period, *map(amount, figures))


def _price(price: views.SitePrice) -> str:
    donated = "" if price.donated == price.explicit else f", {amount(price.donated)} on donated nodes"
    unit = duration(price.charging_unit)
    return f"{price.site}: {amount(price.explicit)} a processor-hour{donated}, charged in units of {unit}"
