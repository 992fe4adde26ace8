"""`adaptor forget`: remove ended bags from the journal."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, confirm, json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.words import plural


@click.command()
@selector_argument("SEL", required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
@json_option
def forget(selector: str, yes: bool, config: str | None, as_json: bool) -> None:
    """Remove ended bags from the journal, for good.

    Their tasks, attempts and explanations go; the files that tasks wrote stay. What the bags have cost still
    counts in budgets and credits of sites. A bag that has not ended is refused.

    \b
    Examples:
      adaptor forget 1-500
      adaptor forget 7 --yes
    """
    bags = [bag.id for bag in Reader().bags(selector)]
    if not yes:
        confirm(f"forget {plural(len(bags), 'bag')} ({_named(bags)}) for good?")
    forgotten = ask_daemon(api.Forget(bags), config)
    if as_json:
        print_json({"bags": bags})
    else:
        click.echo(f"{plural(forgotten, 'bag')} forgotten")


def _named(bags: list[int]) -> str:
    return f"bag {bags[0]}" if len(bags) == 1 else f"{bags[0]} to {bags[-1]}"
