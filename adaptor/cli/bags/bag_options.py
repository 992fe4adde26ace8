"""The options of the commands that make bags, and the words that these pass on."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import click
import msgspec

from adaptor.bag_spec import Option
from adaptor.bagfile.options import OPTIONS
from adaptor.bagfile.template import SOURCES
from adaptor.cli.bags.bag_input import TaskSource, inherited, make_bag, naming_lines
from adaptor.cli.option_sections import SectionedCommand, sectioned
from adaptor.cli.other_tools import HALT_VALUE, hint
from adaptor.option_kinds import NUMBERS


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them all; the command gets one parameter `bag: BagInput` in their place."""

    @functools.wraps(command)
    def with_bag(
        arguments: tuple[str, ...], array: str | None, ignore: tuple[str, ...], no_env: bool, **given: Any
    ) -> Any:
        by_field = {option.field: given.pop(option.field) for option in OPTIONS}
        options = {field: value for field, value in by_field.items() if value is not None}
        lists = {name: given.pop(name) for name in _OF_LISTS}
        meta = click.get_current_context().meta
        behind, with_file = meta.get(BEHIND), lists["file"] is not None
        source = TaskSource(
            **lists,
            values=meta.get(VALUES, ()),
            command=None if with_file else behind,
            arguments=(*arguments, *(behind or () if with_file else ())),
            array=array,
            ignore=[name.strip().lstrip("-") for names in ignore for name in names.split(",")],
            config=given.get("config"),
            needed=not given.get("opened"),
        )
        bag = make_bag(source, options, inherited(no_env))
        with naming_lines(bag.file, bag.lines):
            return command(bag=bag, **given)

    decorated: Callable[..., Any] = with_bag
    for decorate in reversed((_FILE, _ARGUMENTS, *_LISTS, *_SCRIPTS, _NO_ENV, *map(_option, OPTIONS))):
        decorated = decorate(decorated)
    return decorated


def open_bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `bag_options`, and `--open` (the parameter `opened`) for a bag that may begin without
    tasks."""
    help = "Leave the bag open: more tasks come by `adaptor append`."
    return bag_options(sectioned("Tasks", "--open", "opened", is_flag=True, help=help)(command))


def task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what describes tasks alone; the command gets the parameter `source: TaskSource` instead."""

    @functools.wraps(command)
    def with_tasks(**given: Any) -> Any:
        lists = {name: given.pop(name) for name in _OF_LISTS}
        meta = click.get_current_context().meta
        source = TaskSource(
            **lists, values=meta.get(VALUES, ()), command=meta.get(BEHIND), more=True, needed=False
        )
        return command(source=source, **given)

    decorated: Callable[..., Any] = with_tasks
    for decorate in reversed((_FILE, *_LISTS)):
        decorated = decorate(decorated)
    return decorated


def bag_option(key: str, **other: Any) -> Callable[[Any], Any]:
    """One of these options for a command that changes bags, where it has no default; `other`: its fields."""
    (option,) = (option for option in OPTIONS if option.key == key)
    return _option(msgspec.structs.replace(option, default="", **other))


def _option(option: Option) -> Callable[[Any], Any]:
    again = "; repeatable" if option.kind.several else ""
    default = f" (default: {option.default})" if option.default else ""
    help = f"{option.help[0].upper()}{option.help[1:]}{again}{default}."

    def checked(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if value is None or value == ():
            return None
        text = ",".join(value) if option.kind.several else value
        if option.kind is NUMBERS:
            text = ",".join(map(_number, text.split(",")))
        try:
            return option.kind.parse(text, time.time())
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return sectioned(
        option.section,
        f"--{option.key}",
        option.field,
        metavar=option.kind.metavar,
        help=help,
        multiple=option.kind.several,
        callback=checked,
        shell_complete=lambda _ctx, _param, begun: [w for w in option.kind.words if w.startswith(begun)],
    )


def _number(bag: str) -> str:
    """The number of the last bag for `last`; else the text itself."""
    from adaptor.client.reading import Reader

    return str(Reader(time.time).bag(bag.strip()).id) if bag.strip() == "last" else bag


BEHIND, VALUES = "adaptor.behind", "adaptor.values"
"""Keys of a context's `meta`: the words behind `--`, where there is one; those from the first `:::` on."""


class WithWords(SectionedCommand):
    """A command whose words behind `--` are those of another program, however they look, and so are the ones
    before a `:::`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        values = next((index for index, word in enumerate(args) if word in SOURCES), len(args))
        if values < len(args):
            ctx.meta[VALUES] = tuple(args[values:])
            ctx.allow_interspersed_args = False
            args = args[:values]
        if "--" in args:
            at = args.index("--")
            ctx.meta[BEHIND] = tuple(args[at + 1 :])
            args = args[:at]
        if any(word == "--halt" and HALT_VALUE.match(value) for word, value in pairwise(args)):
            ctx.fail("--halt has no value: it means now,fail=1 of parallel; --max-fails N means soon,fail=N")
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            makes_bags = any(param.name == "cpus" for param in self.params)
            if makes_bags and (way := hint(error.option_name)):
                ctx.fail(f"no option '{error.option_name}': {way}")
            raise


def resume_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Option `--resume`: the parameter `resume`."""
    help = "Leave out tasks that an earlier bag of this name and folder has done, or still has to run."
    decorated: Callable[..., Any] = sectioned("More", "--resume", is_flag=True, help=help)(command)
    return decorated


_OF_LISTS = ("file", "json_lines", "template", "parameters", "csv", "per_task")
"""Fields of `TaskSource`, and parameters by `_FILE` and `_LISTS`."""
_FILE = click.argument("file", metavar="[FILE|-]", required=False)
_ARGUMENTS = click.argument("arguments", metavar="[ARGUMENT]... [-- WORD...]", nargs=-1)
_LISTS: tuple[Callable[[Any], Any], ...] = (
    sectioned("More", "--json-lines", is_flag=True, help="FILE is JSON Lines, whatever its name."),
    sectioned("Tasks", "--template", metavar="LINE", help="A shell line with {parameters}, instead of FILE."),
    sectioned(
        "Tasks",
        "-P",
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a parameter: a,b,c or 1:100 or 1:100:5 or @FILE (one per line); +NAME=VALUES goes"
        " along with the parameter before it.",
    ),
    sectioned(
        "More",
        "--csv",
        metavar="FILE",
        help="For --template: a task per row; the first row names the parameters.",
    ),
    sectioned(
        "More",
        "-N",
        "per_task",
        type=click.IntRange(1),
        default=1,
        metavar="N",
        help="For values behind `:::`: how many of them a task gets, as {1} {2} …",
    ),
)
_SCRIPTS: tuple[Callable[[Any], Any], ...] = (
    sectioned("Tasks", "--array", metavar="INDICES", help="Of a batch script: 1-1000:2%50, as for sbatch."),
    sectioned(
        "More",
        "--ignore",
        metavar="NAME",
        multiple=True,
        help="Submit a batch script without what this option of it asks for.",
    ),
)
_NO_ENV = sectioned(
    "More", "--no-env", is_flag=True, help="Do not pass this shell's environment to the tasks."
)
