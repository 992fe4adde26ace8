"""A new bag, from the command line and a file."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from adaptor.api import BagInput, GetPlan, TaskInput
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec
from adaptor.bagfile.options import named_in
from adaptor.bagfile.parse import BagFile, parse_bag, read_data, source_name
from adaptor.bagfile.scripts.getopt import is_script
from adaptor.bagfile.template import expand, read_axes, read_sources
from adaptor.cli.printing import printable
from adaptor.client.environment import captured, current_umask
from adaptor.errors import UsageError
from adaptor.kinds.recognising import kinds_of
from adaptor.notify.channels import MARK
from adaptor.option_kinds import plain_text
from adaptor.units import shortened


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
    bag, default_name = _tasks(source, data, options.get("shell", ""))
    file = _shown_file(source, data)
    return bag_of(bag, default_name, options, environment, file)


def bag_of(
    bag: BagFile,
    default_name: str,
    options: Mapping[str, Any],
    environment: dict[str, str],
    file: str = "",
) -> BagInput:
    """The bag of these tasks, with all paths absolute.

    Args:
        options: by field; they go before those of the file.
        file: its name, for messages; empty: the tasks are of none.

    Raises UsageError.
    """
    given = {"name": default_name, "output": DEFAULT_OUTPUT, **bag.options, **options}
    lines = _set_there(bag.lines, options)
    with naming_lines(file, lines):
        cwd = _folder(_here(), given.get("cwd"))
        given |= {"cwd": cwd, "output": _output(cwd, given["output"]), "environment": environment}
        given |= {"file": file, "lines": lines}
        return _bag_input(given, [_placed(task, cwd) for task in bag.tasks])


def _set_there(lines: Mapping[str, int], options: Mapping[str, Any]) -> dict[str, int]:
    """Lines of a file that set options which those of the command line leave."""
    return {field: line for field, line in lines.items() if field not in options}


@contextlib.contextmanager
def naming_lines(file: str, lines: Mapping[str, int]) -> Iterator[None]:
    """Begins an error with the lines of a file that set the options which it names, by field."""
    try:
        yield
    except UsageError as error:
        if type(error) is not UsageError or not (named := named_in(str(error), lines)):
            raise
        numbers = ",".join(map(str, sorted({lines[field] for field in named})))
        raise UsageError(f"{file}:{numbers}: {error}") from error


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


def more_tasks(source: TaskSource, shell: str) -> tuple[list[TaskInput], str]:
    """Tasks for a bag that is there already, with all paths absolute, and the name of their file, if any.

    `shell`: what runs the lines of the bag; empty: the usual shell.

    Raises UsageError: no source or two of them, bad tasks, options of a bag.
    """
    data = _data(source)
    if data is not None and is_script(data) and not source.json_lines:
        raise UsageError(f"{source.file}: a batch script is a bag of its own: give it to adaptor submit")
    bag, _ = _tasks(source, data, shell)
    if bag.options:
        raise UsageError(
            f"{source.file}: #ADAPTOR sets options of a bag, and this bag has its own since adaptor submit"
        )
    here = _here()
    file = _shown_file(source, data)
    return [_placed(task, here) for task in bag.tasks], file


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
    given |= {"file": _as_text(shown), "lines": _set_there(bag.lines, options)}
    with naming_lines(given["file"], given["lines"]):
        if given["script"].output != os.devnull:
            _output(given["cwd"], given["output"])
        return _bag_input(given, bag.tasks)


def _data(source: TaskSource) -> bytes | None:
    """The text of the file; None: the tasks come from elsewhere."""
    elsewhere = (source.template, source.csv, source.command, source.values or None)
    if source.file is None or any(each is not None for each in elsewhere):
        return None
    words = [source.file, *source.arguments]
    if not Path(source.file).exists() and (len(source.file.split()) > 1 or shutil.which(source.file)):
        raise UsageError(f"{source.file}: no such file; if it is a command, write: {_behind(words)}")
    if source.file == "-" and sys.stdin.isatty():
        click.echo("adaptor: type one shell line per task; Ctrl-D ends the list", err=True)
    return read_data(source.file)


def plan_of(bag: BagInput) -> GetPlan:
    """The question for its plan: the environment of the tasks is of no use to it, and need not travel."""
    spec = msgspec.structs.replace(bag.spec, environment={}, kinds=kinds_of(bag.spec, bag.tasks))
    needs = {place: task.needs for place, task in enumerate(bag.tasks) if task.needs is not None}
    return GetPlan(spec, len(bag.tasks), bag.budget, needs)


def _tasks(source: TaskSource, data: bytes | None, shell: str = "") -> tuple[BagFile, str]:
    """The tasks, and the default name of the bag. `data`: of the file, if any; `shell`: of the options."""
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
    found = parse_bag(data, source.file, time.time(), source.json_lines, more=source.more, shell=shell)
    return found, name


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
        raise UsageError("--: no command; write it behind --, such as: -- ./prog a b")
    if len(words) == 1 and len(words[0].split()) > 1 and shutil.which(words[0]) is None:
        raise UsageError(
            f"--: {shortened(words[0])} is one word, so it would be the name of a program; write the words of"
            f" a command without quotes around them, and a shell line so: {_behind(words)}"
        )
    try:
        return [plain_text(word) for word in words]
    except ValueError as error:
        raise UsageError(f"--: {error}") from None


def _behind(words: Sequence[str]) -> str:
    """A command as it is written behind `--`; a single word with spaces is a shell line."""
    line = len(words) == 1 and len(words[0].split()) > 1
    return f"-- {shlex.join(['bash', '-c', words[0]] if line else words)}"


def _shown_file(source: TaskSource, data: bytes | None) -> str:
    """The name of the file that holds the tasks, for messages; empty: none does."""
    return "" if data is None else _as_text(source_name(source.file or "-"))


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
    if place == "/" and path != DEFAULT_OUTPUT:
        return output
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(b"0")
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"--output: {shown}: you cannot write to {place} ({why}); name another folder"
        ) from None
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
