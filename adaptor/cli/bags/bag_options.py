"""The arguments and options by which `submit`, `run`, `open` and `append` describe bags and tasks."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import click

from adaptor.bagfile.options import OPTIONS, BagOption
from adaptor.cli.bags.bag_input import Source, inherited, make_bag, more_tasks


def bag_options(command: Callable[..., Any], *, tasks_needed: bool = True) -> Callable[..., Any]:
    """Adds them all; the command gets one parameter `bag: BagInput` in their place."""

    @functools.wraps(command)
    def with_bag(
        file: str | None,
        arguments: tuple[str, ...],
        json_lines: bool,
        template: str | None,
        parameters: tuple[str, ...],
        csv: str | None,
        array: str | None,
        ignore: tuple[str, ...],
        no_env: bool,
        **rest: Any,
    ) -> Any:
        given = {option.field: rest.pop(option.field) for option in OPTIONS}
        options = {field: value for field, value in given.items() if value is not None}
        behind = click.get_current_context().meta.get(BEHIND)
        source = Source(
            file=file,
            json_lines=json_lines,
            template=template,
            parameters=parameters,
            csv=csv,
            command=behind if file is None else None,
            arguments=(*arguments, *(behind or () if file is not None else ())),
            array=array,
            ignore=[name.strip().lstrip("-") for names in ignore for name in names.split(",")],
            config=rest.get("config"),
            needed=tasks_needed,
        )
        return command(bag=make_bag(source, options, inherited(no_env)), **rest)

    decorated: Callable[..., Any] = with_bag
    for decorate in reversed((_FILE, _ARGUMENTS, *_LISTS, *_SCRIPTS, _NO_ENV, *map(_option, OPTIONS))):
        decorated = decorate(decorated)
    return decorated


def open_bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `bag_options`, for a bag that may begin without tasks."""
    return bag_options(command, tasks_needed=False)


def task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what describes tasks alone; the command gets one parameter `tasks: list[TaskInput]` instead."""

    @functools.wraps(command)
    def with_tasks(
        file: str | None,
        json_lines: bool,
        template: str | None,
        parameters: tuple[str, ...],
        csv: str | None,
        **rest: Any,
    ) -> Any:
        source = Source(file, json_lines, template, parameters, csv, more=True)
        return command(tasks=more_tasks(source), **rest)

    decorated: Callable[..., Any] = with_tasks
    for decorate in reversed((_FILE, *_LISTS)):
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


BEHIND = "adaptor.behind"
"""Key of a context's `meta`: the words behind `--`, where there is one."""


class WithWords(click.Command):
    """A command whose words behind `--` are those of another program, however they look."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[BEHIND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def resume_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--resume`: the parameter `resume`."""
    help = "Leave out tasks that an earlier bag of this name and folder has done, or still has to run."
    return click.option("--resume", is_flag=True, help=help)(command)


_FILE = click.argument("file", metavar="[FILE|-]", required=False)
_ARGUMENTS = click.argument("arguments", metavar="[ARGUMENT]... [-- WORD...]", nargs=-1)
_LISTS: tuple[Callable[[Any], Any], ...] = (
    click.option("--json-lines", is_flag=True, help="FILE is JSON Lines, whatever its name."),
    click.option("--template", metavar="LINE", help="A shell line with {parameters}, instead of FILE."),
    click.option(
        "-P",
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter: a,b,c or 1:100 or 1:100:5 or @FILE (one per line); +NAME=VALUES goes"
        " along with the parameter before it.",
    ),
    click.option(
        "--csv", metavar="FILE", help="For --template: a task per row; the first row names the parameters."
    ),
)
_SCRIPTS: tuple[Callable[[Any], Any], ...] = (
    click.option("--array", metavar="INDICES", help="Of a batch script: 1-1000:2%50, as for sbatch."),
    click.option(
        "--ignore",
        metavar="NAME",
        multiple=True,
        help="Submit a batch script without what this option of it asks for.",
    ),
)
_NO_ENV = click.option("--no-env", is_flag=True, help="Do not pass this shell's environment to the tasks.")
