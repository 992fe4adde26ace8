"""`adaptor results`: how the tasks of a bag ended, and what they printed."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from adaptor import api
from adaptor.cli.bags.task_output import ENDED, follow_output, outputs_of, print_outputs
from adaptor.cli.options import OneOf, check_tasks, json_option, selector_argument
from adaptor.cli.options import numbers as task_numbers
from adaptor.cli.printing import (
    Columns,
    NumberCell,
    plural,
    print_json,
    print_lines,
    printable,
    readable,
    size,
    table,
)
from adaptor.cli.sentences import counts, title
from adaptor.client.reading import PAGE, Reader, all_tasks
from adaptor.endings import ending
from adaptor.errors import UsageError
from adaptor.outputs.finding import Outputs, tail
from adaptor.outputs.packing import Stream

SHORT = 20  # tasks of a bag that are listed where not all are asked for
_FEW = 200  # tasks that are asked for at a time where only some are listed
_STATES = ("waiting", "running", "done", "failed", "cancelled")
_FAILED = ("failed", "cancelled")


class _Tasks(msgspec.Struct, frozen=True):
    """The tasks of a bag that are wanted, and the way to their outputs."""

    reader: Reader
    bag: api.BagView
    outputs: Outputs
    states: tuple[str, ...]  # empty: in any
    numbers: list[range] | None

    @property
    def all(self) -> bool:
        return not self.states and self.numbers is None

    def ask(self, size: int | None = None) -> Iterator[api.TaskView]:
        """Asked for as they are taken, `size` at a time."""
        if self.numbers is None:
            yield from all_tasks(self.reader.get, self.bag.id, list(self.states), size)
            return
        first, last = min(some.start for some in self.numbers), max(some.stop for some in self.numbers) - 1
        size = min(size or PAGE, last - first + 1)
        for task in all_tasks(self.reader.get, self.bag.id, list(self.states), size, first - 1):
            if any(task.task in some for some in self.numbers):
                yield task
            if task.task >= last:
                return

    def shown(self, size: int | None = None) -> Iterator[api.TaskView]:
        """The tasks with the paths of their outputs."""
        for task in self.ask(size):
            ran, place = task.attempt > 0, self.outputs.find
            out = place(task.task, task.attempt, "stdout", task.stdout) if ran else None
            err = place(task.task, task.attempt, "stderr", task.stderr) if ran else None
            yield msgspec.structs.replace(task, stdout=out and out.path, stderr=err and err.path)


@click.command(short_help="Show how tasks ended, or print their output.")
@selector_argument("[BAGS]", default="last")
@click.option("--failed", is_flag=True, help="Only tasks that ended without a result.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=OneOf(_STATES),
    metavar="STATE",
    help=f"Only tasks in this state; repeatable: {', '.join(_STATES)}.",
)
@click.option(
    "--task", "numbers", type=task_numbers, metavar="NUMBERS", help="Only these tasks, such as 1-10."
)
@click.option("--all", "every", is_flag=True, help=f"List all tasks, not {SHORT} of each bag.")
@click.option("--stdout", "stream", flag_value="stdout", help="Print what the tasks wrote to stdout.")
@click.option("--stderr", "stream", flag_value="stderr", help="Print what the tasks wrote to stderr.")
@click.option("--tag", is_flag=True, help="With --stdout: each line begins with the task's name or number.")
@click.option("--follow", is_flag=True, help="With --task N: print its output as it grows, until its end.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all fields, separated by commas.")
@json_option
def results(
    selector: str,
    failed: bool,
    states: tuple[str, ...],
    numbers: list[range] | None,
    every: bool,
    stream: Stream | None,
    tag: bool,
    follow: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show how tasks ended, or print their output (default: last bag).

    Failures come first, by their ending, each with the last lines of one task's stderr.

    \b
    Examples:
      adaptor results 7 --failed
      adaptor results last --stdout > all.txt
      adaptor results --task 5 --follow
    """
    asked = {"--json": as_json, "--csv": as_csv, f"--{stream}": stream or follow}
    forms = [form for form, there in asked.items() if there]
    if len(forms) > 1:
        names = " and ".join(form.replace("--None", "--follow") for form in forms)
        raise UsageError(f"{names} are mutually exclusive; --json names the files")
    reader = Reader(time.time)
    if follow:
        _follow(reader, selector, numbers, stream or "stdout")
        return
    if failed:
        states += _FAILED
    bags = reader.bags(selector)
    check_tasks(bags, numbers)
    found = [_Tasks(reader, bag, outputs_of(bag), states, numbers) for bag in bags]
    if as_json:
        print_json([task for each in found for task in each.shown()])
    elif as_csv:
        for line in csv_lines(task for each in found for task in each.shown()):
            click.echo(line)
    elif stream is not None:
        pairs = [(task, each.outputs) for each in found for task in each.ask()]
        print_outputs(pairs, stream, headings=len(pairs) > 1 and not tag, bags=len(found) > 1, tag=tag)
    else:
        for each in found:
            _print_bag(each, every=every)


def _print_bag(found: _Tasks, *, every: bool) -> None:
    bag = found.bag
    if found.numbers is None:
        sums = found.reader.get(api.GetTaskSums(bag.id)) if bag.failed else None
        print_lines(summary_lines(bag, sums, found.outputs))
    few = not every and found.numbers is None
    tasks = list(islice(found.shown(_FEW if few else None), None if every else SHORT + 1))
    more = not every and len(tasks) > SHORT
    print_lines(table_lines(bag, tasks[:SHORT] if more else tasks))
    if more:
        rest = plural(bag.tasks - SHORT, "more task") if found.all else "more"
        click.echo(f"{rest}: --all lists them, --failed those without a result")


def _follow(reader: Reader, selector: str, numbers: list[range] | None, stream: Stream) -> None:
    """Print the output of the one chosen task as it grows. Raises UsageError: not one task is chosen, or it
    is missing."""
    bag = reader.bag(selector)
    if numbers is None or len(numbers) != 1 or len(numbers[0]) != 1:
        raise UsageError("--follow needs the number of one task: --task 5 --follow")
    number = numbers[0].start

    def look() -> api.TaskView:
        asked = api.GetTasks(bag.id, after=number - 1, limit=1)
        for task in reader.get(asked):
            if task.task == number:
                return task
        raise UsageError(f"bag {bag.id} has no task {number}")

    follow_output(look, Outputs(bag.output), stream)


_TAIL = 3  # lines of the standard error of one task for each ending
_WIDTH = 116
_SCARCE = 1 << 16  # bytes


def summary_lines(bag: api.BagView, sums: api.TaskSums | None, outputs: Outputs) -> Iterator[str]:
    """The end of the bag, then each kind of failure with the end of one standard error."""
    yield f"{title(bag)}: {counts(bag)}; output in {printable(bag.output)}"
    if sums is None:
        return
    for failure in sums.failures:
        words = printable(ending(failure.exit_code, failure.signal, failure.error), 60)
        yield f"  {failure.count:,} × {words}, such as task {failure.task}"
        told = tail(outputs.find_one(failure.task, failure.attempt, "stderr", failure.stderr), _TAIL)
        yield from (f"      {printable(line, _WIDTH - 6)}" for line in told.splitlines())
    if sums.other_failures > 0:
        yield f"  {plural(sums.other_failures, 'task')} failed in other ways"
    if _is_full(bag.output):
        yield f"  the disk of {printable(bag.output)} is full: tasks that could not write may have failed"


def _is_full(folder: str) -> bool:
    """True if users can write less than `_SCARCE` there; a quota of their own does not show."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _SCARCE


def table_lines(bag: api.BagView, tasks: Sequence[api.TaskView]) -> Iterator[str]:
    if not tasks:
        yield "no tasks match"
        return
    within = f"{Path(bag.output)}/"
    columns = {
        **_COLUMNS,
        "stdout": lambda task: _path(task.stdout, within),
        "stderr": lambda task: _path(task.stderr, within),
    }
    if not any(task.peak_gpu_memory for task in tasks):
        del columns["gpu memory"]
    yield from table(tasks, columns)


def _ending(task: api.TaskView) -> str:
    ended = task.state in ENDED
    return printable(ending(task.exit_code, task.signal, task.error), 48) if ended else "-"


def _tries(task: api.TaskView) -> NumberCell:
    own = task.attempts - task.replicas
    return NumberCell(f"{own} (+{plural(task.replicas, 'replica')})" if task.replicas else own)


_SAMPLED = 1.0  # seconds after which the memory of a task is sampled
_WORKER = 32 << 20
"""Bytes that a worker holds at most where it runs commands. Without a sample, the kernel's figure for a task
begins with them."""


def _memory(task: api.TaskView) -> NumberCell:
    """`<22M` where the figure may be that of the worker."""
    peak, wall = task.peak_memory, task.wall
    bound = peak is not None and peak < _WORKER and wall is not None and wall < _SAMPLED
    return NumberCell(f"{'<' if bound else ''}{size(peak)}")


_COLUMNS: Columns = {
    "task": "task",
    "name": lambda task: printable(task.name or task.command, 32),
    "state": "state",
    "ending": _ending,
    "tries": _tries,
    "wall": "wall",
    "cpu": "cpu",
    "memory": _memory,
    "gpu memory": "peak_gpu_memory",
    "node": "node",
}


def _path(path: str | None, within: str) -> str:
    """Relative to the folder that is printed above the table. No `Path` is made: there may be 100,000."""
    return "-" if path is None else path.removeprefix(within)


class _Lines:
    """A file for `csv.writer`."""

    def write(self, line: str) -> str:
        return line


def csv_lines(tasks: Iterable[api.TaskView]) -> Iterator[str]:
    """Every field of `results --json`, with a title line; times in ISO 8601."""
    writer: Any = csv.writer(_Lines(), lineterminator="\n")
    names = [field.name for field in msgspec.structs.fields(api.TaskView)]
    yield writer.writerow(names)[:-1]
    for task in tasks:
        values = readable(task)
        yield writer.writerow([values[name] for name in names])[:-1]
