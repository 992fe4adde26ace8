"""Instances of WfCommons as records of tasks: a file in WfFormat 1.5 (JSON), or a folder of them.

An instance is one run of a workflow. Those of a folder are read in the order in which they ran, so earlier
runs are earlier bags. They say how long tasks ran, mostly how large their inputs were, sometimes the peak of
their memory, and never what their users asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from adaptor_experiments.task_records import TaskRecord, told
from adaptor_simulation.files import TraceError

_NUMBER = re.compile(r"_(ID)?\d+$")  # by which the tasks of one name differ
_OF_PEGASUS = ("%Y%m%dT%H%M%S%z", "%m-%d-%yT%H:%M:%S%z")  # times that are written in no ISO format


class _File(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    size_in_bytes: float = 0.0


class _Planned(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: str
    input_files: list[str] = []


class _Specification(msgspec.Struct, frozen=True):
    tasks: list[_Planned]
    files: list[_File] = []


class _Command(msgspec.Struct, frozen=True):
    program: str = ""


class _Done(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    runtime_in_seconds: float
    memory_in_bytes: float | None = None
    command: _Command = _Command()


class _Execution(msgspec.Struct, frozen=True, rename="camel"):
    tasks: list[_Done]
    executed_at: str


class _Workflow(msgspec.Struct, frozen=True):
    specification: _Specification
    execution: _Execution


class _Instance(msgspec.Struct, frozen=True):
    workflow: _Workflow

    @property
    def began(self) -> float:
        """Epoch seconds. Raises ValueError: it is no time."""
        text = self.workflow.execution.executed_at
        for shape in _OF_PEGASUS:
            with suppress(ValueError):
                return datetime.strptime(text, shape).timestamp()
        return datetime.fromisoformat(text).timestamp()

    def records(self, left_out: Counter[str]) -> Iterator[TaskRecord]:
        """The tasks that took time, in the order of the instance; the others are counted."""
        plan, began = self.workflow.specification, self.began
        sizes = {file.id: file.size_in_bytes for file in plan.files}
        planned = {task.id: task for task in plan.tasks}
        for task in self.workflow.execution.tasks:
            if task.runtime_in_seconds <= 0:
                left_out["they took no time"] += 1
            elif task.id not in planned:
                left_out["the plan of the workflow does not name them"] += 1
            else:
                yield TaskRecord(
                    kind=_kind(task.command.program, planned[task.id].name),
                    submitted=began,
                    ran=task.runtime_in_seconds,
                    limit=None,
                    asked=None,
                    peak=int(task.memory_in_bytes or 0) or None,
                    input=_size(planned[task.id].input_files, sizes),
                )


def is_wf_format(path: Path) -> bool:
    """Whether `read_instances` reads it, by its name."""
    return path.is_dir() or path.suffix == ".json"


def read_instances(path: Path) -> tuple[list[TaskRecord], list[str]]:
    """The tasks of a file, or of all JSON files of a folder, and what was left out.

    Raises TraceError: a file cannot be read or is no instance, or the folder has none.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise TraceError(f"{path}: no instance of WfCommons (*.json) is in this folder")
    instances = sorted((_read(file) for file in files), key=lambda each: each.began)
    left_out = Counter[str]()
    return [task for each in instances for task in each.records(left_out)], told(left_out)


def _read(path: Path) -> _Instance:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Instance)
        _ = found.began
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise TraceError(f"{path}: no instance in WfFormat 1.5: {error}") from error
    return found


def _kind(program: str, name: str) -> str:
    """The program; where there is a script instead, the name without the number of the task."""
    return program if program and not re.search(r"\s", program) else _NUMBER.sub("", name)


def _size(files: list[str], sizes: dict[str, float]) -> float | None:
    """Bytes of the files together; None: one is not known, or all are empty."""
    known = [sizes.get(file) for file in dict.fromkeys(files)]
    found = sum(size for size in known if size is not None)
    return found if found > 0 and None not in known else None
