"""A new bag, from the command line and a file."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec
from adaptor.bagfile.parameters import read_axes
from adaptor.bagfile.parse import BagFile, parse_bag, read_data, source_name
from adaptor.bagfile.scripts.directives import is_script
from adaptor.bagfile.template import expand
from adaptor.cli.words import printable
from adaptor.client.environment import captured
from adaptor.errors import UsageError
from adaptor.notify.urls import MARK
from adaptor.option_kinds import plain_text


class Source(msgspec.Struct, frozen=True):
    """Where the tasks come from."""

    file: str | None = None
    json_lines: bool = False
    template: str | None = None
    parameters: Sequence[str] = ()
    csv: str | None = None
    command: Sequence[str] | None = None
    """What stands behind `--`; None: there is no `--`."""
    arguments: Sequence[str] = ()
    """For a script."""
    array: str | None = None
    ignore: Sequence[str] = ()
    """Options of a script that need not be followed."""
    config: str | None = None
    """Where the sites are that a script may name by their partitions; None: the usual place."""
    needed: bool = True
    """Whether no source at all is an error."""
    more: bool = False
    """Whether the tasks are for a bag that may have others already."""


def make_bag(
    source: Source, options: Mapping[str, Any], environment: dict[str, str], here: str | None = None
) -> BagInput:
    """The bag, with all paths absolute.

    Args:
        options: of the command line, by field; they win over those of the file.

    Raises:
        UsageError: no source or two of them, bad tasks, a folder that is not there.
    """
    data = _data(source)
    if data is not None and is_script(data) and not source.json_lines:
        return _script(data, source, options, environment, here or _here())
    of_scripts = {"--array": source.array, "--ignore": source.ignore, "arguments": source.arguments}
    for name, value in of_scripts.items():
        if value:
            raise UsageError(f"{name}: for a batch script only, which begins with '#!'")
    bag, default_name = _tasks(source, data)
    given = {"name": default_name, "output": DEFAULT_OUTPUT, **bag.options, **options}
    cwd = _folder(here or _here(), given.get("cwd"))
    given |= {"cwd": cwd, "output": _output(cwd, given["output"]), "environment": environment}
    return _bag_input(given, [_placed(task, cwd) for task in bag.tasks])


def _bag_input(given: dict[str, Any], tasks: list[TaskInput]) -> BagInput:
    """`given`: by field of `BagSpec` and `BagInput`."""
    given["notify"] = tuple(_listener(given["cwd"], each) for each in given.get("notify", ()))
    of_spec = {field: given.pop(field) for field in BagSpec.__struct_fields__ if field in given}
    return BagInput(spec=BagSpec(**of_spec), tasks=tasks, **given)


def more_tasks(source: Source) -> list[TaskInput]:
    """Tasks for a bag that is there already, with all paths absolute.

    Raises:
        UsageError: no source or two of them, bad tasks, options of a bag.
    """
    data = _data(source)
    if data is not None and is_script(data) and not source.json_lines:
        raise UsageError(f"{source.file}: a batch script is a bag of its own: give it to adaptor submit")
    bag, _ = _tasks(source, data)
    if bag.options:
        raise UsageError(
            f"{source.file}: #ADAPTOR sets options of a bag, which are set already: give them to adaptor open"
        )
    here = _here()
    return [_placed(task, here) for task in bag.tasks]


def _script(
    data: bytes, source: Source, options: Mapping[str, Any], environment: dict[str, str], folder: str
) -> BagInput:
    """The bag of a script that was submitted in this folder."""
    from adaptor.bagfile.scripts.script import Submission, script_bag
    from adaptor.cli.bags.script_sites import check_wishes, usual_dialect

    assert source.file is not None
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
        usual=usual_dialect(source.config, options.get("sites", ())),
    )
    shown = source_name(source.file)
    file_name = "sbatch" if source.file == "-" else Path(source.file).name
    bag = script_bag(data, shown, file_name, submission)
    given = {**bag.options, "cwd": _folder(folder, bag.cwd), "environment": bag.environment}
    if given["script"].output != os.devnull:
        _output(given["cwd"], given["output"])
    told = bool(given.get("notify"))
    chosen = given.get("sites", ())
    given["sites"] = check_wishes(bag.wishes, shown, source.config, chosen=chosen, told=told)
    return _bag_input(given, bag.tasks)


def _data(source: Source) -> bytes | None:
    """What the file holds; None: the tasks come from elsewhere."""
    elsewhere = (source.template, source.csv, source.command)
    if source.file is None or any(each is not None for each in elsewhere):
        return None
    return read_data(source.file)


def _tasks(source: Source, data: bytes | None) -> tuple[BagFile, str]:
    """The tasks, and the default name of the bag. `data`: of the file, if any."""
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
        raise UsageError("no tasks; give a FILE, - for standard input, --template, or -- COMMAND")
    name = "stdin" if source.file == "-" else Path(source.file).stem
    return parse_bag(data, source.file, time.time(), source.json_lines, more=source.more), name


def _command(words: Sequence[str]) -> list[str]:
    if not words or not words[0]:
        raise UsageError("--: no command; write: adaptor submit -- ./prog a b")
    try:
        return [plain_text(word) for word in words]
    except ValueError as error:
        raise UsageError(f"--: {error}") from None


def _here() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the current folder no longer exists; change to another, or give --cwd") from None


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


def _listener(cwd: str, name: str) -> str:
    """A channel, or the file of URLs, which the daemon finds from anywhere."""
    return f"{MARK}{_below(cwd, name[1:])}" if name.startswith(MARK) else name


def _placed(task: TaskInput, cwd: str) -> TaskInput:
    if task.cwd is None:
        return task
    return msgspec.structs.replace(task, cwd=_below(cwd, task.cwd))


def inherited(no_env: bool) -> dict[str, str]:
    """This shell's environment for the tasks; names variables that cannot be passed on stderr."""
    if no_env:
        return {}
    kept, foreign = captured(os.environ)
    if foreign:
        click.echo(
            f"adaptor: left out of the environment, not UTF-8: {printable(', '.join(foreign))}", err=True
        )
    return kept
