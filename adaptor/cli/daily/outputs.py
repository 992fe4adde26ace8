"""What tasks wrote, copied to stdout byte by byte."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from adaptor import views


def print_outputs(tasks: Sequence[views.TaskView], stream: str) -> None:
    """The `stdout` or `stderr` of tasks in their order; with a heading each where there are several.

    A file that has gone is told on stderr and does not keep the others from being printed.
    """
    several_bags = len({task.bag for task in tasks}) > 1
    for task in tasks:
        name = f"bag {task.bag} task {task.task}" if several_bags else f"task {task.task}"
        if len(tasks) > 1:
            click.echo(f"==> {name} <==")
        path = task.stdout if stream == "stdout" else task.stderr
        if path is not None:
            _copy(Path(path), name)


def _copy(path: Path, name: str) -> None:
    sys.stdout.flush()
    try:
        file = path.open("rb")
    except OSError as error:
        click.echo(f"adaptor: {name}: {path}: {error.strerror}", err=True)
        return
    with file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()
