"""`adaptor budget`: what a bag may cost."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.credit_words import credit_line
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.errors import UsageError


@click.command()
@selector_argument("BAG", required=True)
@click.option(
    "--set", "credits", type=float, metavar="CREDITS", help="The new budget, including what is used."
)
@config_option
@json_option
def budget(selector: str, credits: float | None, config: str | None, as_json: bool) -> None:
    """Show or change what a bag may cost. With enough credits, a paused bag continues.

    A bag with a budget runs in its own pilots.

    \b
    Example:
      adaptor budget 7 --set 500
    """
    reader = Reader()
    bag = reader.bag(selector).id
    if credits is None:
        found = reader.get(api.GetCredits(str(bag)))
    else:
        found = ask_daemon(api.SetBudget(bag, credits), config)
    if not found.bags:
        raise UsageError(
            f"bag {bag} has no budget and has cost nothing yet; set one: adaptor budget {bag} --set CREDITS"
        )
    if as_json:
        print_json(found.bags[0])
    else:
        click.echo(f"bag {bag}: {credit_line(found.bags[0])}")
