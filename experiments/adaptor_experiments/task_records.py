"""Records of the tasks of real workflows: what their users asked for, and what earlier bags of a kind say.

The records are traces of Nextflow (CSV); a process of the workflow is a kind of task. Of each kind, the tasks
submitted first are one bag, whose record is what the journal would keep of it; the others are the next bag.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

import msgspec

from adaptor.bag_spec import TaskKind
from adaptor.journal.kind_rows import GROWTH
from adaptor.kinds.earlier import earlier_tasks, memory_needed, record_of
from adaptor.units import counted
from adaptor_simulation.files import TraceError

_COLUMNS = ("process", "status", "submit", "realtime", "time", "memory", "peak_rss")
_FEWEST = 5  # tasks of each of the two bags of a kind
_GB_HOURS = 1e9 * 3600
_SITE = "site"


class TaskRecord(msgspec.Struct, frozen=True):
    """A task that finished. Seconds, bytes."""

    kind: str
    submitted: float
    ran: float
    limit: float
    asked: int
    peak: int


class Waste(msgspec.Struct, frozen=True):
    """Wasted memory of the attempts of tasks; byte seconds."""

    wasted: float = 0.0
    killed: int = 0
    """Attempts that needed more than they had, and are made again with more."""


class NextBag(msgspec.Struct, frozen=True):
    """The second bag of a kind, with what its user asked for and what the first bag said."""

    tasks: Sequence[TaskRecord]
    memory: int
    """Bytes that `mem=auto` asks for each task."""
    mean: float
    """Predicted mean of the runtimes."""


def read_records(path: Path) -> tuple[list[TaskRecord], list[str]]:
    """The tasks in the order of their submission, and what was left out.

    Raises TraceError: the file cannot be read, or is no trace of Nextflow.
    """
    try:
        content = path.read_bytes()
        if content.startswith(b"\xfd7zXZ\x00"):
            content = lzma.decompress(content)
        elif content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        rows = csv.DictReader(io.StringIO(content.decode("utf-8")))
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error
    if missing := [column for column in _COLUMNS if column not in (rows.fieldnames or ())]:
        raise TraceError(f"{path}: a trace of Nextflow has the column {missing[0]}")
    found, left_out = list[TaskRecord](), Counter[str]()
    for row in rows:
        if row["status"] != "COMPLETED":
            left_out["not completed"] += 1
            continue
        try:
            submitted, ran, limit, asked, peak = (
                float(row[column]) for column in ("submit", "realtime", "time", "memory", "peak_rss")
            )
        except (ValueError, TypeError):
            left_out["what they asked for or used is not known"] += 1
            continue
        if min(ran, limit, asked, peak) <= 0:
            left_out["what they asked for or used is zero"] += 1
            continue
        found.append(
            TaskRecord(row["process"], submitted / 1e3, ran / 1e3, limit / 1e3, int(asked), int(peak))
        )
    found.sort(key=lambda task: task.submitted)
    return found, [f"{counted(number, 'task')} left out: {why}" for why, number in left_out.items()]


def next_bags(records: Sequence[TaskRecord]) -> list[NextBag]:
    """Next bag of each kind with enough tasks."""
    kinds: dict[str, list[TaskRecord]] = {}
    for task in records:
        kinds.setdefault(task.kind, []).append(task)
    found = []
    for name, tasks in kinds.items():
        first, then = tasks[: len(tasks) // 2], tasks[len(tasks) // 2 :]
        if len(first) < _FEWEST:
            continue
        kind = TaskKind(key=name, name=name, tasks=len(then))
        kept = {
            name: {
                _SITE: [record_of(len(first), [each.ran for each in first], [each.peak for each in first])]
            }
        }
        memory, earlier = memory_needed([kind], kept), earlier_tasks([kind], kept, _SITE)
        if memory is not None and earlier is not None:
            found.append(NextBag(then, memory, earlier.mean))
    return found


def waste_of(task: TaskRecord, asked: float) -> Waste:
    """If it asks for this, and after a kill for `GROWTH` times as much; a killed attempt runs as long."""
    wasted, killed = 0.0, 0
    while asked < task.peak:
        wasted, killed, asked = wasted + asked * task.ran, killed + 1, asked * GROWTH
    return Waste(wasted + (asked - task.peak) * task.ran, killed)


HEADINGS = (
    *("workflow", "kinds", "tasks", "used", "asked: wasted", "mem=auto: wasted", "killed"),
    *("time limit ÷ runtime", "mean within factor 2"),
)


def table(bags: Mapping[str, Sequence[NextBag]]) -> Iterator[tuple[str, ...]]:
    """By workflow: GB·h of memory used and wasted, attempts killed, and what is known of the runtimes."""
    for name, its in bags.items():
        tasks = [task for bag in its for task in bag.tasks]
        if not tasks:
            yield name, "0", *("",) * (len(HEADINGS) - 2)
            continue
        auto = [waste_of(task, bag.memory) for bag in its for task in bag.tasks]
        asked = [waste_of(task, task.asked) for task in tasks]
        near = [abs(math.log2(bag.mean / fmean(task.ran for task in bag.tasks))) <= 1 for bag in its]
        yield (
            *(name, str(len(its)), f"{len(tasks):,}"),
            f"{sum(task.peak * task.ran for task in tasks) / _GB_HOURS:,.1f} GB·h",
            f"{sum(each.wasted for each in asked) / _GB_HOURS:,.1f} GB·h",
            f"{sum(each.wasted for each in auto) / _GB_HOURS:,.1f} GB·h",
            f"{sum(each.killed for each in auto):,}",
            f"{median(task.limit / task.ran for task in tasks):,.0f}",
            f"{sum(near)} of {counted(len(its), 'kind')}",
        )
