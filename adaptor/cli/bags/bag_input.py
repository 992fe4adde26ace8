"""A new bag, from the command line and a file."""

from __future__ import annotations

import functools
import getpass
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from adaptor.api import BagInput, GetPlan, TaskInput
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec, Option
from adaptor.bagfile.options import OPTIONS
from adaptor.bagfile.parse import BagFile, parse_bag, read_data, source_name
from adaptor.bagfile.scripts.getopt import is_script
from adaptor.bagfile.template import SOURCES, expand, read_axes, read_sources
from adaptor.cli.option_sections import SectionedCommand, sectioned
from adaptor.cli.printing import printable
from adaptor.client.environment import captured, current_umask
from adaptor.errors import UsageError
from adaptor.kinds.recognising import kinds_of
from adaptor.notify.channels import MARK
from adaptor.option_kinds import NUMBERS, plain_text


class TaskSource(msgspec.Struct, frozen=True):
    """Source of the tasks."""

    file: str | None = None
    json_lines: bool = False
    template: str | None = None
    parameters: Sequence[str] = ()
    csv: str | None = None
    values: Sequence[str] = ()  # from `:::` on, of a command that `file` and `arguments` are, or `template`
    per_task: int = 1  # of these
    command: Sequence[str] | None = None  # words behind `--`; None: there is no `--`
    arguments: Sequence[str] = ()  # for a script, or of a command with `values`
    array: str | None = None
    ignore: Sequence[str] = ()  # options of a script that need not be followed
    config: str | None = None
    """Configuration with the sites that a script may name by their partitions; None: the usual place."""
    needed: bool = True  # whether no source at all is an error
    more: bool = False  # whether the tasks are for a bag that may have others already


def make_bag(source: TaskSource, options: Mapping[str, Any], environment: dict[str, str]) -> BagInput:
    """The bag, with all paths absolute.

    `options`: of the command line, by field; they win over those of the file.

    Raises UsageError: no source or two of them, bad tasks, a folder that is not there.
    """
    data = _data(source)
    if data is not None and is_script(data) and not source.json_lines:
        return _script(data, source, options, environment, _here())
    if source.arguments and not source.values:
        raise UsageError(
            f"{source.arguments[0]}: only a batch script, which begins with '#!', has arguments; "
            "submit bag files one by one"
        )
    of_scripts = {"--array": source.array, "--ignore": source.ignore}
    for name, value in of_scripts.items():
        if value:
            raise UsageError(f"{name}: for a batch script only, which begins with '#!'")
    return bag_of(*_tasks(source, data), options, environment)


def bag_of(
    bag: BagFile, default_name: str, options: Mapping[str, Any], environment: dict[str, str]
) -> BagInput:
    """The bag of these tasks, with all paths absolute; `options`: by field; they go before those of the file.
    Raises UsageError."""
    given = {"name": default_name, "output": DEFAULT_OUTPUT, **bag.options, **options}
    cwd = _folder(_here(), given.get("cwd"))
    given |= {"cwd": cwd, "output": _output(cwd, given["output"]), "environment": environment}
    return _bag_input(given, [_placed(task, cwd) for task in bag.tasks])


def _bag_input(given: dict[str, Any], tasks: list[TaskInput]) -> BagInput:
    """The bag of these tasks and options. `given`: by field of `BagSpec` and `BagInput`."""
    given["notify"] = tuple(  # channels, and files of URLs, which the daemon finds from anywhere
        f"{MARK}{_below(given['cwd'], each[1:])}" if each.startswith(MARK) else each
        for each in given.get("notify", ())
    )
    if "stage" in given:
        given["stage"] = tuple(_below(given["cwd"], path) for path in given["stage"])
    if "container" in given:
        given["container"] = _below(given["cwd"], given["container"])
        if not os.path.exists(given["container"]):  # noqa: PTH110
            raise UsageError(f"--container: {given['container']}: no such image")
    of_spec = {field: given.pop(field) for field in BagSpec.__struct_fields__ if field in given}
    spec = BagSpec(**of_spec, umask=current_umask())
    return BagInput(spec=spec, tasks=tasks, **given)


def more_tasks(source: TaskSource) -> list[TaskInput]:
    """Tasks for a bag that is there already, with all paths absolute.

    Raises UsageError: no source or two of them, bad tasks, options of a bag.
    """
    data = _data(source)
    if data is not None and is_script(data) and not source.json_lines:
        raise UsageError(f"{source.file}: a batch script is a bag of its own: give it to adaptor submit")
    bag, _ = _tasks(source, data)
    if bag.options:
        raise UsageError(
            f"{source.file}: #ADAPTOR sets options of a bag, and this bag has its own since adaptor submit"
        )
    here = _here()
    return [_placed(task, here) for task in bag.tasks]


def _script(
    data: bytes, source: TaskSource, options: Mapping[str, Any], environment: dict[str, str], folder: str
) -> BagInput:
    from adaptor.bagfile.scripts.script import Submission, script_bag
    from adaptor.config.loading import config_path, load_config

    assert source.file is not None
    config = load_config(config_path(source.config))
    submission = Submission(
        folder=folder,
        user=getpass.getuser(),
        host=socket.gethostname(),
        home=str(Path.home()),
        environment=environment,
        arguments=source.arguments,
        array=source.array,
        ignore=source.ignore,
        options=options,
        now=time.time(),
        sites=config.sites,
        notified=bool(config.notify.default),
    )
    shown = source_name(source.file)
    file_name = "sbatch" if source.file == "-" else _as_text(Path(source.file).name)
    bag = script_bag(data, shown, file_name, submission)
    for remark in bag.remarks:
        click.echo(f"adaptor: {shown}:{remark.line}: {printable(remark.text)}", err=True)
    given = {**bag.options, "cwd": _folder(folder, bag.cwd), "sites": bag.sites}
    given["environment"] = bag.environment
    if given["script"].output != os.devnull:
        _output(given["cwd"], given["output"])
    return _bag_input(given, bag.tasks)


def _data(source: TaskSource) -> bytes | None:
    """The text of the file; None: the tasks come from elsewhere."""
    elsewhere = (source.template, source.csv, source.command, source.values or None)
    if source.file is None or any(each is not None for each in elsewhere):
        return None
    return read_data(source.file)


def plan_of(bag: BagInput) -> GetPlan:
    """The question for its plan: the environment of the tasks is of no use to it, and need not travel."""
    spec = msgspec.structs.replace(bag.spec, environment={}, kinds=kinds_of(bag.spec, bag.tasks))
    return GetPlan(spec, len(bag.tasks), bag.budget)


def _tasks(source: TaskSource, data: bytes | None) -> tuple[BagFile, str]:
    """The tasks, and the default name of the bag. `data`: of the file, if any."""
    if source.values:
        return _of_values(source)
    if source.per_task > 1:
        raise UsageError("-N: for values behind ':::', such as adaptor run cmp {1} {2} ::: *.txt")
    if source.command is not None and (source.file or source.template or source.csv):
        raise UsageError("FILE, --template and -- COMMAND are mutually exclusive")
    if source.file is not None and (source.template is not None or source.csv is not None):
        raise UsageError("FILE and --template are mutually exclusive")
    if source.command is not None:
        return BagFile([TaskInput(_command(source.command))]), Path(source.command[0]).name
    if source.template is not None:
        axes = read_axes(source.parameters, source.csv)
        return BagFile(expand(source.template, axes)), Path(source.template.split()[0]).name
    if source.parameters or source.csv is not None:
        raise UsageError(f"--{'param' if source.parameters else 'csv'} requires --template")
    if source.file is None or data is None:
        if not source.needed:
            return BagFile([]), "open"
        raise UsageError(NO_TASKS)
    name = "stdin" if source.file == "-" else _as_text(Path(source.file).stem)
    return parse_bag(data, source.file, time.time(), source.json_lines, more=source.more), name


def _of_values(source: TaskSource) -> tuple[BagFile, str]:
    """A command and its values, as GNU parallel has them."""
    words = [*([source.file] if source.file is not None else []), *source.arguments, *(source.command or ())]
    if source.parameters or source.csv is not None:
        raise UsageError("-P and --csv name values, and ':::' has others; give one of both")
    if (source.template is None) == (not words):
        raise UsageError("':::': write a command before it: adaptor run gzip {} ::: *.txt")
    template = source.template if source.template is not None else " ".join(words)
    tasks = expand(template, read_sources(source.values, source.per_task), as_parallel=not source.template)
    return BagFile(tasks), Path(template.split()[0]).name if template.split() else "tasks"


NO_TASKS = "no tasks; give a FILE, - for standard input, --template, or -- COMMAND"


def _command(words: Sequence[str]) -> list[str]:
    if not words or not words[0]:
        raise UsageError("--: no command; write: adaptor submit -- ./prog a b")
    try:
        return [plain_text(word) for word in words]
    except ValueError as error:
        raise UsageError(f"--: {error}") from None


def _as_text(name: str) -> str:
    """The name of a file, which may hold any bytes, for people."""
    return os.fsencode(name).decode(errors="replace")


def _here() -> str:
    try:
        return plain_text(str(Path.cwd()))
    except FileNotFoundError:
        raise UsageError("the current folder no longer exists; change to another, or give --cwd") from None
    except ValueError as error:
        raise UsageError(f"the current folder: {error}; change to another, or give --cwd") from None


def _below(folder: str, path: str) -> str:
    return os.path.normpath(Path(folder, Path(path).expanduser()))


def _folder(here: str, path: str | None) -> str:
    cwd = _below(here, path) if path is not None else here
    if not Path(cwd).is_dir():
        raise UsageError(f"--cwd: {cwd}: no such folder")
    return cwd


def _output(cwd: str, path: str) -> str:
    """The folder for the output, which can be made and written as far as this machine can tell."""
    output = _below(cwd, path)
    place = output
    while not os.path.lexists(place):
        place = os.path.dirname(place)  # noqa: PTH120
    shown = output.replace("{bag}", "BAG")
    if not os.path.isdir(place):  # noqa: PTH112
        raise UsageError(f"--output: {shown}: {place} is not a folder")
    # A site over ssh may have folders of which not even the first part is here.
    there = place == "/" and path != DEFAULT_OUTPUT
    if not there and not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        raise UsageError(f"--output: {shown}: you cannot write to {place}; name another folder")
    return output


def _placed(task: TaskInput, cwd: str) -> TaskInput:
    if task.cwd is None:
        return task
    return msgspec.structs.replace(task, cwd=_below(cwd, task.cwd))


def inherited(no_env: bool) -> dict[str, str]:
    """Environment of this shell for the tasks; names variables that cannot be passed on stderr."""
    if no_env:
        return {}
    kept, foreign = captured(os.environ)
    if foreign:
        click.echo(
            f"adaptor: left out of the environment, not UTF-8: {printable(', '.join(foreign))}", err=True
        )
    return kept


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
        return command(bag=make_bag(source, options, inherited(no_env)), **given)

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
    """Adds what describes tasks alone; the command gets one parameter `tasks: list[TaskInput]` instead."""

    @functools.wraps(command)
    def with_tasks(**given: Any) -> Any:
        lists = {name: given.pop(name) for name in _OF_LISTS}
        meta = click.get_current_context().meta
        source = TaskSource(
            **lists, values=meta.get(VALUES, ()), command=meta.get(BEHIND), more=True, needed=False
        )
        return command(tasks=more_tasks(source), **given)

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
    from adaptor.cli.options import BagReader

    return str(BagReader().bag(bag.strip()).id) if bag.strip() == "last" else bag


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
        return super().parse_args(ctx, args)


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
