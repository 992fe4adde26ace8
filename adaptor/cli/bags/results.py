"""`adaptor results`: how the tasks of a bag ended, and what they printed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click
import msgspec

from adaptor import api
from adaptor.cli.bags.task_output import follow_output, print_outputs
from adaptor.cli.bags.task_table import csv_lines, joblog_lines, summary_lines, table_lines
from adaptor.cli.options import json_option
from adaptor.cli.printing import print_json, print_lines
from adaptor.cli.selectors import Reader, selector_argument
from adaptor.cli.selectors import numbers as task_numbers
from adaptor.cli.words import plural
from adaptor.client.reading import all_tasks
from adaptor.errors import UsageError
from adaptor.outputs.finding import Outputs
from adaptor.outputs.names import Stream

SHORT = 20
"""Tasks of a bag that are listed where not all are asked for."""
_FEW = 200
"""Tasks that are asked for at a time where only some are listed."""
_STATES = ("waiting", "running", "done", "failed", "cancelled")
_FAILED = ("failed", "cancelled")


class _Tasks(msgspec.Struct, frozen=True):
    """The tasks of a bag that are wanted, and the way to their outputs."""

    reader: Reader
    bag: api.BagView
    outputs: Outputs
    states: tuple[str, ...]
    """Empty: in any."""
    numbers: list[range] | None

    @property
    def all(self) -> bool:
        return not self.states and self.numbers is None

    def ask(self, size: int | None = None) -> Iterator[api.TaskView]:
        """Asked for as they are taken, `size` at a time."""
        for task in all_tasks(self.reader.get, self.bag.id, list(self.states), size):
            if self.numbers is None or any(task.task in some for some in self.numbers):
                yield task

    def shown(self, size: int | None = None) -> Iterator[api.TaskView]:
        """The same with the paths of their outputs."""
        return (_with_paths(task, self.outputs) for task in self.ask(size))


@click.command(short_help="Show how tasks ended, or print their output.")
@selector_argument("[SEL]", default="last")
@click.option("--failed", is_flag=True, help="Only tasks that ended without a result.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES),
    help="Only tasks in this state (may be repeated).",
)
@click.option(
    "--task", "numbers", type=task_numbers, metavar="NUMBERS", help="Only these tasks, such as 1-10."
)
@click.option("--all", "every", is_flag=True, help=f"List all tasks, not {SHORT} of each bag.")
@click.option("--stdout", "stream", flag_value="stdout", help="Print what the tasks wrote to stdout.")
@click.option("--stderr", "stream", flag_value="stderr", help="Print what the tasks wrote to stderr.")
@click.option("--follow", is_flag=True, help="With --task N: print its output as it grows, until its end.")
@click.option("--tsv", "table", flag_value="tsv", help="Print the columns of GNU parallel's joblog.")
@click.option("--csv", "table", flag_value="csv", help="Print all fields, separated by commas.")
@json_option
def results(
    selector: str,
    failed: bool,
    states: tuple[str, ...],
    numbers: list[range] | None,
    every: bool,
    stream: Stream | None,
    follow: bool,
    table: str | None,
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
    _check_forms({"--json": as_json, f"--{table}": table, f"--{stream}": stream or follow})
    reader = Reader()
    if follow:
        _follow(reader, selector, numbers, stream or "stdout")
        return
    if failed:
        states += _FAILED
    found = [
        _Tasks(reader, bag, Outputs(bag.output, packed=bag.output_files == "packed"), states, numbers)
        for bag in reader.bags(selector)
    ]
    if as_json:
        print_json([task for each in found for task in each.shown()])
    elif table is not None:
        tasks = (task for each in found for task in each.shown())
        print_lines(joblog_lines(tasks) if table == "tsv" else csv_lines(tasks))
    elif stream is not None:
        pairs = [(task, each.outputs) for each in found for task in each.ask()]
        print_outputs(pairs, stream, headings=len(pairs) > 1, bags=len(found) > 1)
    else:
        for each in found:
            _print_bag(each, every=every)


def _check_forms(asked: dict[str, Any]) -> None:
    forms = [form for form, there in asked.items() if there]
    if len(forms) > 1:
        names = " and ".join(form.replace("--None", "--follow") for form in forms)
        raise UsageError(f"{names} are mutually exclusive; --json names the files")


def _with_paths(task: api.TaskView, outputs: Outputs) -> api.TaskView:
    out = outputs.find(task.task, task.attempt, "stdout", task.stdout) if task.attempt else None
    err = outputs.find(task.task, task.attempt, "stderr", task.stderr) if task.attempt else None
    return msgspec.structs.replace(task, stdout=out and out.path, stderr=err and err.path)


def _print_bag(found: _Tasks, *, every: bool) -> None:
    bag = found.bag
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
    """Raises UsageError: not one task is chosen, or it is not there."""
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
