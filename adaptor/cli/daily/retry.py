"""`adaptor retry`: put failed and cancelled tasks of bags back."""

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
def retry(selector: str, config: str | None, as_json: bool) -> None:
    """Run failed and cancelled tasks of bags again.

    \b
    Example:
      adaptor retry 7 && adaptor watch 7
    """
    change(selector, control.Retry, "put back", config, as_json)
