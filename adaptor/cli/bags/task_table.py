"""Tasks as tables: for people, as the joblog of GNU parallel, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor import api
from adaptor.cli.printing import Columns, readable, table
from adaptor.cli.sentences import counts, title
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


_OF_JOBLOG = ("Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command")
"""Of `parallel --joblog`."""
_RAN = ("done", "failed")
_BREAKS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def joblog_lines(tasks: Iterable[api.TaskView]) -> Iterator[str]:
    """The tasks that have run and ended. As in GNU parallel, Seq counts from 1: task 0 is Seq 1."""
    yield "\t".join(_OF_JOBLOG)
    for task in tasks:
        if task.state in _RAN and task.started is not None:
            yield "\t".join(_joblog_row(task))


def _joblog_row(task: api.TaskView) -> tuple[str, ...]:
    code = task.exit_code
    return (
        str(task.task + 1),
        (task.node or "-").translate(_BREAKS),
        f"{task.started or 0.0:.3f}",
        f"{task.wall or 0.0:10.3f}",
        "0",
        "0",
        str(code if code is not None else 0 if task.state == "done" else -1),
        str(task.signal or 0),
        task.command.translate(_BREAKS),
    )


class _Lines:
    """What `csv.writer` writes to."""

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
