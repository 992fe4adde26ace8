"""Tasks as tables for other programs: GNU parallel's joblog, and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from adaptor import api
from adaptor.cli.json_output import readable

_COLUMNS = ("Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command")
"""Of `parallel --joblog`."""
_ENDED = ("done", "failed")
_BREAKS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def joblog_lines(tasks: Iterable[api.TaskView]) -> Iterator[str]:
    """The tasks that have run and ended. As in GNU parallel, Seq counts from 1: task 0 is Seq 1."""
    yield "\t".join(_COLUMNS)
    for task in tasks:
        if task.state in _ENDED and task.started is not None:
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
