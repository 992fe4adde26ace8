"""The arguments and options by which `submit` and `run` describe a new bag."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import click

from adaptor.bagfile.options import OPTIONS, BagOption
from adaptor.cli.daily.bag_input import Source, inherited, make_bag


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them all; the command gets one parameter `bag: BagInput` in their place."""

    @functools.wraps(command)
    def with_bag(
        file: str | None,
        json_lines: bool,
        template: str | None,
        parameters: tuple[str, ...],
        no_env: bool,
        **rest: Any,
    ) -> Any:
        given = {option.field: rest.pop(option.field) for option in OPTIONS}
        options = {field: value for field, value in given.items() if value is not None}
        source = Source(file, json_lines, template, parameters)
        return command(bag=make_bag(source, options, inherited(no_env)), **rest)

    decorated: Callable[..., Any] = with_bag
    for decorate in reversed((*_SOURCES, *map(_option, OPTIONS))):
        decorated = decorate(decorated)
    return decorated


def _option(option: BagOption) -> Callable[[Any], Any]:
    """The option of the command line for an option of a bag."""
    again = ", or repeat the option" if option.kind.several else ""
    help = f"{option.help[0].upper()}{option.help[1:]}{again} (default: {option.default})."

    def checked(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if value is None or value == ():
            return None
        text = ",".join(value) if option.kind.several else value
        try:
            return option.kind.parse(text, time.time())
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return click.option(
        f"--{option.key}",
        option.field,
        metavar=option.kind.metavar,
        help=help,
        multiple=option.kind.several,
        callback=checked,
        shell_complete=lambda _ctx, _param, begun: [w for w in option.kind.words if w.startswith(begun)],
    )


_SOURCES: tuple[Callable[[Any], Any], ...] = (
    click.argument("file", metavar="[FILE|-]", required=False),
    click.option("--json-lines", is_flag=True, help="FILE is JSON Lines, whatever its name."),
    click.option("--template", metavar="LINE", help="A shell line with {parameters}, instead of FILE."),
    click.option(
        "-P",
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter: a,b,c or 1:100 or 1:100:5 or @FILE (one per line).",
    ),
    click.option("--no-env", is_flag=True, help="Do not pass this shell's environment to the tasks."),
)
