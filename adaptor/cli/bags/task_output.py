"""Output of tasks: whole, or as it grows; and which of it is gone."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

import click

from adaptor import api
from adaptor.cli.follow import Overview
from adaptor.cli.printing import clock, plural, printable
from adaptor.client.reading import Reader, all_tasks
from adaptor.outputs.finding import OutputPlace, Outputs, open_place
from adaptor.outputs.packing import Stream

ENDED = ("done", "failed", "cancelled")
_FOLLOWING = 200  # tasks that are asked for at a time
PAUSE = 0.5  # seconds between two looks at an output that grows
_CHUNK = 1 << 20
_SPANS = 20  # spans of task numbers that one line names


def print_outputs(
    tasks: Iterable[tuple[api.TaskView, Outputs]],
    stream: Stream,
    *,
    headings: bool = False,
    bags: bool = False,
    tag: bool = False,
) -> None:
    """The outputs of tasks in their order.

    A file that cannot be read is named on stderr, as are those that are gone; the others are still printed.

    Args:
        headings: whether each gets a line with its number above it.
        bags: whether that line names the bag too.
        tag: whether each line begins with the task's name, or its number, and a tab.
    """
    missing: dict[Outputs, list[api.TaskView]] = {}
    whole = True  # whether the last line has its end
    for task, outputs in tasks:
        name = f"bag {task.bag} task {task.task}" if bags else f"task {task.task}"
        if headings:
            click.echo(f"{'' if whole else chr(10)}==> {name} <==")
            whole = True
        place = outputs.find(task.task, task.attempt, stream, getattr(task, stream))
        if place is not None:
            whole = _print_whole(place, name, f"{printable(task.name or str(task.task))}\t" if tag else "")
        elif task.state in ("done", "failed") and task.attempt:
            missing.setdefault(outputs, []).append(task)
    for outputs, without in missing.items():
        for line in gone_lines(without, outputs, stream):
            click.echo(f"adaptor: {line}", err=True)


def gone_lines(tasks: list[api.TaskView], outputs: Outputs, stream: Stream) -> Iterator[str]:
    """A note on tasks that have run and whose output is gone.

    Workers remove what stays empty. So an output is gone only if its folder is, or was made after the end of
    the task. Files that a batch script names stay.
    """
    named = [task for task in tasks if getattr(task, stream) not in (None, os.devnull)]
    if named:
        yield f"bag {named[0].bag}: the {stream} of {_which(named)} is gone: no such file"
    others = [task for task in tasks if getattr(task, stream) is None]
    made = outputs.made_at() if others else None
    if made is None:
        return
    folder = printable(outputs.folder)
    if made == math.inf:
        yield f"bag {others[0].bag}: what {_which(others)} may have written is gone: no folder {folder}"
    elif before := [task for task in others if (task.ended or math.inf) < made]:
        yield (
            f"bag {before[0].bag}: what {_which(before)} may have written is gone: {folder} was made again at"
            f" {clock(made)}"
        )


def _which(tasks: list[api.TaskView]) -> str:
    """Chosen tasks in words: `3 tasks (0-1, 5)`."""
    spans: list[list[int]] = []
    for task in tasks:
        if spans and spans[-1][1] == task.task - 1:
            spans[-1][1] = task.task
        else:
            spans.append([task.task, task.task])
    shown = [f"{low}-{high}" if low < high else f"{low}" for low, high in spans[:_SPANS]]
    more = ", ..." if len(spans) > _SPANS else ""
    return f"{plural(len(tasks), 'task')} ({', '.join(shown)}{more})"


def print_in_order(snapshots: Iterable[Overview], bag: int, *, tag: bool) -> Iterator[Overview]:
    """Pass the snapshots on; print the output of each task of a bag when it and all before it have ended."""
    reader, printed = Reader(time.time), -1
    outputs: Outputs | None = None
    for snapshot in snapshots:
        if outputs is None:
            outputs = outputs_of(next(view for view in snapshot.bags if view.id == bag))
        outputs.refresh()
        following = all_tasks(reader.get, bag, [], _FOLLOWING, after=printed)
        for task in takewhile(lambda task: task.state in ENDED, following):
            print_outputs([(task, outputs)], "stdout", tag=tag)
            printed = task.task
        yield snapshot


def outputs_of(bag: api.BagView) -> Outputs:
    return Outputs(bag.output, packed=bag.output_files == "packed", kept=bag.output_files != "none")


def _print_whole(place: OutputPlace, name: str, tag: str) -> bool:
    """True if the last line that was printed has its end. `tag`: the beginning of each line."""
    sys.stdout.flush()
    try:
        file = open_place(place)
    except OSError as error:
        click.echo(f"adaptor: {name}: {printable(place.path)}: {error.strerror}", err=True)
        return True
    last = b"\n"
    with file:
        if tag:
            text = file.read() if place.size is None else file.read(place.size)
            for line in text.splitlines():
                sys.stdout.buffer.write(tag.encode() + line + b"\n")
        else:
            left = math.inf if place.size is None else place.size
            while left > 0 and (data := file.read(int(min(left, _CHUNK)))):
                sys.stdout.buffer.write(data)
                left, last = left - len(data), data[-1:]
    sys.stdout.buffer.flush()
    return last == b"\n"


def follow_output(look: Callable[[], api.TaskView], outputs: Outputs, stream: Stream) -> api.TaskView:
    """Print what a task writes until it has ended; a new attempt begins with a line on stderr.

    `look`: asks for the task as it is now.

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
        time.sleep(PAUSE)


def _print_from(place: OutputPlace, start: int) -> int:
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
