"""A new bag, from the command line and a file."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec
from adaptor.bagfile.parameters import parse_parameter
from adaptor.bagfile.parse import BagFile, read_bag
from adaptor.bagfile.template import expand
from adaptor.cli.daily.environment import captured
from adaptor.cli.words import printable
from adaptor.errors import UsageError
from adaptor.protocol.control import BagInput, TaskInput


class Source(msgspec.Struct, frozen=True):
    """Where the tasks come from."""

    file: str | None
    json_lines: bool
    template: str | None
    parameters: Sequence[str]


def make_bag(
    source: Source, options: Mapping[str, Any], environment: dict[str, str], here: str | None = None
) -> BagInput:
    """The bag, with all paths absolute.

    Args:
        options: of the command line, by field; they win over those of the file.

    Raises:
        UsageError: no source or two of them, bad tasks, a folder that is not there.
    """
    bag, default_name = _tasks(source)
    given = {"name": default_name, "output": DEFAULT_OUTPUT, **bag.options, **options}
    cwd = _folder(here or _here(), given.get("cwd"))
    given |= {"cwd": cwd, "output": _output(cwd, given["output"]), "environment": environment}
    of_spec = {field: given.pop(field) for field in BagSpec.__struct_fields__ if field in given}
    return BagInput(spec=BagSpec(**of_spec), tasks=[_placed(task, cwd) for task in bag.tasks], **given)


def _tasks(source: Source) -> tuple[BagFile, str]:
    """The tasks, and the default name of the bag."""
    if source.template is not None:
        if source.file is not None:
            raise UsageError("FILE and --template are mutually exclusive")
        parameters: dict[str, list[str]] = {}
        for name, values in map(parse_parameter, source.parameters):
            if name in parameters:
                raise UsageError(f"duplicate --param {name}; write {name}=a,b for several values")
            parameters[name] = values
        tasks = expand(source.template, parameters)
        return BagFile(tasks), Path(source.template.split()[0]).name
    if source.parameters:
        raise UsageError("--param requires --template")
    if source.file is None:
        raise UsageError("no tasks; give a FILE, - for standard input, or --template")
    name = "stdin" if source.file == "-" else Path(source.file).stem
    return read_bag(source.file, time.time(), source.json_lines), name


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
