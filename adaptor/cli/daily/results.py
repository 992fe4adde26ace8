"""`adaptor results`: how the tasks of a bag ended, and what they printed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import click

from adaptor import views
from adaptor.cli.json_output import print_json
from adaptor.cli.options import json_option
from adaptor.cli.reader import Reader, all_tasks
from adaptor.cli.selectors import numbers as task_numbers
from adaptor.cli.selectors import selector_argument
from adaptor.cli.table import layout
from adaptor.cli.words import duration, ending, printable, size
from adaptor.errors import UsageError
from adaptor.model import TaskState

_TITLES: tuple[str, ...] = (
    "task",
    "name",
    "state",
    "ending",
    "tries",
    "wall",
    "cpu",
    "memory",
    "node",
    "stdout",
    "stderr",
)
_FAILED = [TaskState.FAILED.value, TaskState.CANCELLED.value]


@click.command()
@selector_argument("[SEL]", default="last")
@click.option("--failed", is_flag=True, help="Only tasks that ended without a result.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in TaskState]),
    help="Only tasks in this state (may be repeated).",
)
@click.option(
    "--task", "numbers", type=task_numbers, metavar="NUMBERS", help="Only these tasks, such as 1-10."
)
@click.option("--stdout", "stream", flag_value="stdout", help="Print what the tasks wrote to stdout.")
@click.option("--stderr", "stream", flag_value="stderr", help="Print what the tasks wrote to stderr.")
@json_option
def results(
    selector: str,
    failed: bool,
    states: tuple[str, ...],
    numbers: list[range] | None,
    stream: str | None,
    as_json: bool,
) -> None:
    """Show how tasks ended (default: last bag), or print their output.

    \b
    Examples:
      adaptor results 7 --failed
      adaptor results last --stdout > all.txt
    """
    if as_json and stream:
        raise UsageError(f"--json and --{stream} are mutually exclusive; --json names the files")
    reader = Reader()
    chosen = [*states, *(_FAILED if failed else [])]
    found = [(bag, list(_tasks(reader, bag.id, chosen, numbers))) for bag in reader.bags(selector)]
    if as_json:
        print_json([task for _, tasks in found for task in tasks])
    elif stream:
        print_outputs([task for _, tasks in found for task in tasks], stream)
    else:
        for bag, tasks in found:
            _print_bag(bag, tasks)


def _tasks(
    reader: Reader, bag: int, states: list[str], numbers: list[range] | None
) -> Iterator[views.TaskView]:
    for task in all_tasks(reader.get, bag, states):
        if numbers is None or any(task.task in some for some in numbers):
            yield task


def _print_bag(bag: views.BagView, tasks: list[views.TaskView]) -> None:
    click.echo(f"bag {bag.id} {printable(bag.name)}: output in {printable(bag.output)}")
    if not tasks:
        click.echo("no tasks match")
        return
    for line in layout(_TITLES, [_row(task, f"{Path(bag.output)}/") for task in tasks]):
        click.echo(line)


def _row(task: views.TaskView, within: str) -> tuple[str, ...]:
    ended = TaskState(task.state).ended
    return (
        str(task.task),
        printable(task.name or task.command, 32),
        task.state,
        printable(ending(task.exit_code, task.signal, task.error), 48) if ended else "-",
        str(task.attempts),
        duration(task.wall),
        duration(task.cpu),
        size(task.peak_memory),
        task.node or "-",
        _path(task.stdout, within),
        _path(task.stderr, within),
    )


def _path(path: str | None, within: str) -> str:
    """Relative to the folder that is printed above the table. No `Path` is made: there may be 100,000."""
    return "-" if path is None else path.removeprefix(within)


def print_outputs(tasks: Sequence[views.TaskView], stream: str) -> None:
    """The `stdout` or `stderr` of tasks in their order; with a heading each where there are several.

    A file that no longer exists is named on stderr; the others are still printed.
    """
    several_bags = len({task.bag for task in tasks}) > 1
    for task in tasks:
        name = f"bag {task.bag} task {task.task}" if several_bags else f"task {task.task}"
        if len(tasks) > 1:
            click.echo(f"==> {name} <==")
        path = task.stdout if stream == "stdout" else task.stderr
        if path is not None:
            _copy(Path(path), name)


def _opened(path: Path) -> BinaryIO:
    """A plain file; a fifo that somebody has put in its place is not waited for. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise OSError(errno.EINVAL, "no plain file")


def _copy(path: Path, name: str) -> None:
    sys.stdout.flush()
    try:
        file = _opened(path)
    except OSError as error:
        click.echo(f"adaptor: {name}: {printable(str(path))}: {error.strerror}", err=True)
        return
    with file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()
