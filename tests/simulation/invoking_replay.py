"""Commands called as the whole program calls them, with their errors raised."""

from __future__ import annotations

import click
from click.testing import CliRunner, Result


def call(group: click.Group, *arguments: object, text: str | None = None) -> Result:
    # A command keeps the help option of its first call, which must be that of the program.
    result = CliRunner().invoke(
        group, [str(argument) for argument in arguments], input=text, help_option_names=["-h", "--help"]
    )
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
