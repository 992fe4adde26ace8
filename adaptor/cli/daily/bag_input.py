"""From what was said on the command line and in a file to a new bag."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from adaptor.bagfile.options import BagOptions
from adaptor.bagfile.parameters import parse_parameter
from adaptor.bagfile.parse import BagFile, read_bag
from adaptor.bagfile.template import expand
from adaptor.cli.daily.environment import captured
from adaptor.errors import UsageError
from adaptor.protocol.control import BagInput, TaskInput


class Source(msgspec.Struct, frozen=True):
    """Where the tasks come from."""

    file: str | None
    json_lines: bool
    template: str | None
    parameters: Sequence[str]


def make_bag(
    source: Source, options: BagOptions, environment: dict[str, str], here: str | None = None
) -> BagInput:
    """The bag, with all paths absolute; `options` win over those of the file.

    Raises:
        UsageError: no source or two of them, bad tasks, a folder that is not there.
    """
    bag, default_name = _tasks(source)
    said = bag.options.under(options)
    cwd = _folder(here or _here(), said.cwd)
    given = {key: value for key, value in msgspec.structs.asdict(said).items() if value is not None}
    given |= {"cwd": cwd, "name": said.name or default_name}
    if said.output is not None:
        given["output"] = _below(cwd, said.output)
    return BagInput(**given, environment=environment, tasks=[_placed(task, cwd) for task in bag.tasks])


def _tasks(source: Source) -> tuple[BagFile, str]:
    """The tasks, and a name for want of a better one."""
    if source.template is not None:
        if source.file is not None:
            raise UsageError("a FILE and --template exclude each other")
        parameters: dict[str, list[str]] = {}
        for name, values in map(parse_parameter, source.parameters):
            if name in parameters:
                raise UsageError(f"--param {name}: given twice; write {name}=a,b for several values")
            parameters[name] = values
        tasks = expand(source.template, parameters)
        return BagFile(tasks), Path(source.template.split()[0]).name
    if source.parameters:
        raise UsageError("--param needs a --template")
    if source.file is None:
        raise UsageError("no tasks: name a FILE, - for standard input, or a --template")
    return read_bag(source.file, source.json_lines), "stdin" if source.file == "-" else Path(source.file).stem


def _here() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the current folder is gone; change to another, or give --cwd") from None


def _below(folder: str, path: str) -> str:
    return os.path.normpath(Path(folder, Path(path).expanduser()))


def _folder(here: str, path: str | None) -> str:
    cwd = _below(here, path) if path is not None else here
    if not Path(cwd).is_dir():
        raise UsageError(f"--cwd: {cwd}: no such folder")
    return cwd


def _placed(task: TaskInput, cwd: str) -> TaskInput:
    if task.cwd is None:
        return task
    return msgspec.structs.replace(task, cwd=_below(cwd, task.cwd))


def inherited(no_env: bool) -> dict[str, str]:
    """This shell's environment for the tasks; a variable that cannot be handed on is told on stderr."""
    if no_env:
        return {}
    kept, foreign = captured(os.environ)
    if foreign:
        click.echo(f"adaptor: not UTF-8, left out of the environment: {', '.join(foreign)}", err=True)
    return kept
