"""Printing what tasks have written, once or as it grows."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable

import click

from adaptor import api
from adaptor.cli.words import printable
from adaptor.outputs.finding import Outputs, Place, open_place
from adaptor.outputs.names import Stream

PAUSE = 0.5
"""Seconds between two looks at an output that grows."""
_CHUNK = 1 << 20


def print_outputs(
    tasks: Iterable[tuple[api.TaskView, Outputs]], stream: Stream, *, headings: bool, bags: bool
) -> None:
    """The outputs of tasks in their order.

    A file that cannot be read is named on stderr; the others are still printed.

    Args:
        headings: whether each gets a line with its number above it.
        bags: whether that line names the bag too.
    """
    for task, outputs in tasks:
        name = f"bag {task.bag} task {task.task}" if bags else f"task {task.task}"
        if headings:
            click.echo(f"==> {name} <==")
        place = outputs.find(task.task, task.attempt, stream, getattr(task, stream))
        if place is not None:
            _print_whole(place, name)


def _print_whole(place: Place, name: str) -> None:
    sys.stdout.flush()
    try:
        file = open_place(place)
    except OSError as error:
        click.echo(f"adaptor: {name}: {printable(place.path)}: {error.strerror}", err=True)
        return
    with file:
        if place.size is None:
            shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            left = place.size
            while left > 0 and (data := file.read(min(left, _CHUNK))):
                sys.stdout.buffer.write(data)
                left -= len(data)
    sys.stdout.buffer.flush()


def follow_output(
    look: Callable[[], api.TaskView],
    outputs: Outputs,
    stream: Stream,
    sleep: Callable[[float], None] = time.sleep,
) -> api.TaskView:
    """Print what a task writes until it has ended; a new attempt begins with a line on stderr.

    Args:
        look: asks for the task as it is now.

    Returns:
        The task when it has ended.
    """
    printed, attempt = 0, 0
    while True:
        task = look()  # before its output: what it has written by its end is then there
        if task.attempt != attempt:
            if attempt:
                click.echo(f"adaptor: task {task.task}: attempt {task.attempt}", err=True)
            printed, attempt = 0, task.attempt
        outputs.refresh()
        place = outputs.find(task.task, attempt, stream, getattr(task, stream)) if attempt else None
        if place is not None:
            printed += _print_from(place, printed)
        if task.state not in ("waiting", "running"):
            return task
        sleep(PAUSE)


def _print_from(place: Place, start: int) -> int:
    """The bytes of an output after its first `start`, printed; how many there were."""
    try:
        file = open_place(place)
    except OSError:  # it is just being packed: the next look finds it
        return 0
    count = 0
    with file:
        file.seek(place.start + start)
        while data := file.read(_CHUNK if place.size is None else min(_CHUNK, place.size - start - count)):
            sys.stdout.buffer.write(data)
            count += len(data)
    sys.stdout.buffer.flush()
    return count
