"""The tasks of a bag in a table, and how those that failed ended, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from adaptor import api
from adaptor.cli.progress import counts, title
from adaptor.cli.table import Columns, table
from adaptor.cli.words import plural, printable
from adaptor.endings import ending
from adaptor.outputs.finding import Outputs
from adaptor.outputs.tails import tail

_ENDED = ("done", "failed", "cancelled")
_TAIL = 3
"""Lines of the standard error of one task for each ending."""
_WIDTH = 116


def summary_lines(bag: api.BagView, sums: api.TaskSums | None, outputs: Outputs) -> Iterator[str]:
    """What became of the bag, then each ending of its failures with the end of one standard error."""
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
    ended = task.state in _ENDED
    return printable(ending(task.exit_code, task.signal, task.error), 48) if ended else "-"


_COLUMNS: Columns = {
    "task": "task",
    "name": lambda task: printable(task.name or task.command, 32),
    "state": "state",
    "ending": _ending,
    "tries": "attempts",
    "wall": "wall",
    "cpu": "cpu",
    "memory": "peak_memory",
    "gpu memory": "peak_gpu_memory",
    "node": "node",
}


def _path(path: str | None, within: str) -> str:
    """Relative to the folder that is printed above the table. No `Path` is made: there may be 100,000."""
    return "-" if path is None else path.removeprefix(within)
