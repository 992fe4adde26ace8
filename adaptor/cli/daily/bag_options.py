"""The arguments and options by which `submit` and `run` describe a new bag."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from adaptor.bagfile.options import BagOptions, parse_option
from adaptor.cli.daily.bag_input import Source, inherited, make_bag


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them all; the command gets the one parameter `bag: BagInput` in their place."""

    @functools.wraps(command)
    def with_bag(
        file: str | None,
        json_lines: bool,
        template: str | None,
        parameters: tuple[str, ...],
        no_env: bool,
        **rest: Any,
    ) -> Any:
        options = BagOptions(**{field: rest.pop(field) for field in BagOptions.__struct_fields__})
        source = Source(file, json_lines, template, parameters)
        return command(bag=make_bag(source, options, inherited(no_env)), **rest)

    decorated: Callable[..., Any] = with_bag
    for decorate in reversed((*_SOURCES, *_OPTIONS)):
        decorated = decorate(decorated)
    return decorated


def _checked(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """By the same rules as on an `#ADAPTOR` line."""
    if value is None or value == ():
        return None
    key = param.opts[0].lstrip("-")
    try:
        return parse_option(key, ",".join(value) if isinstance(value, tuple) else value)[1]
    except ValueError as error:
        raise click.BadParameter(str(error).partition(": ")[2], ctx, param) from None


_SOURCES: tuple[Callable[[Any], Any], ...] = (
    click.argument("file", metavar="[FILE|-]", required=False),
    click.option("--json-lines", is_flag=True, help="FILE is JSON Lines, whatever its name."),
    click.option("--template", metavar="LINE", help="A shell line with {parameters}, in place of a FILE."),
    click.option(
        "-P",
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter: a,b,c or 1:100 or 1:100:5 or @FILE (one per line).",
    ),
    click.option("--no-env", is_flag=True, help="Do not hand this shell's environment on to the tasks."),
)


def _option(*names: str, metavar: str, help: str, multiple: bool = False) -> Callable[[Any], Any]:
    return click.option(*names, metavar=metavar, help=help, multiple=multiple, callback=_checked)


_OPTIONS = (
    _option("--name", metavar="TEXT", help="Name of the bag (default: of the file)."),
    _option("--cpus", metavar="N", help="Processors of each task (default 1)."),
    _option("--mem", "memory", metavar="SIZE", help="Memory of each task, such as 4G."),
    _option("--retries", metavar="N", help="How often a failed task is tried again (default 3)."),
    _option("--replicas", metavar="N", help="Extra attempts at the end, on idle processors (default 1)."),
    _option("--site", "sites", metavar="NAME", multiple=True, help="Only this site (may be repeated)."),
    _option("--budget", metavar="CREDITS", help="What the bag may cost at most (default: no limit)."),
    _option("--deadline", metavar="TIME", help="By when it shall be done: 12h, or 2026-11-22T08:00."),
    _option("--prefer", metavar="WORD", help="cheap, balanced or fast (default: all that can be had)."),
    _option(
        "--allocation",
        metavar="WORD",
        help="explicit (formal requests), transparent (idle nodes that are lent) or mixed (the default).",
    ),
    _option("--cwd", metavar="DIR", help="Where the tasks run (default: here)."),
    _option("--output", metavar="DIR", help="Where their output goes (default: adaptor-BAG in --cwd)."),
)
