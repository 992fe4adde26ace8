"""`adaptor cancel`: end the unfinished tasks of bags."""

from __future__ import annotations

import click

from adaptor.cli.daily.changing import change
from adaptor.cli.options import config_option, json_option
from adaptor.cli.selectors import selector_argument
from adaptor.protocol import control


@click.command()
@selector_argument("SEL", required=True)
@config_option
@json_option
def cancel(selector: str, config: str | None, as_json: bool) -> None:
    """Cancel the unfinished tasks of bags.

    \b
    Example:
      adaptor cancel last
    """
    change(selector, control.Cancel, "cancelled", config, as_json)
