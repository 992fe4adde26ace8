"""Records of the tasks of real workflows: what their users asked for, and what earlier bags of a kind say.

The records are traces of Nextflow (CSV); a process of the workflow is a kind of task. Of each kind, the tasks
submitted first are one bag, whose record is what the journal would keep of it; the others are the next bag.

Next to what earlier bags say of all tasks alike stands what the size of its input would say of a task: a line
through the first bag (Ponder; Sizey, Bader et al. 2024, has it among others). The records have no size of the
inputs but the bytes that a task has read, which are known after the run only: so this is a bound.
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
_READ = "rchar"  # a column that may be missing: bytes read
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
    read: float | None = None
    """Bytes; None: not known."""


class Waste(msgspec.Struct, frozen=True):
    """Wasted memory of the attempts of tasks; byte seconds."""

    wasted: float = 0.0
    killed: int = 0
    """Attempts that needed more than they had, and are made again with more."""


class Line(msgspec.Struct, frozen=True):
    """A figure of a task by the bytes that it reads, as in an earlier bag."""

    start: float
    slope: float
    least: float
    """The smallest figure of the earlier bag: no task is foreseen to be below."""
    above: float
    """By which the figure of a task of the earlier bag was above the line, at most."""

    def of(self, read: float) -> float:
        return max(self.least, self.start + self.slope * read)

    def most(self, read: float) -> float:
        """The figure that no task of the earlier bag would have exceeded."""
        return self.of(read) + self.above


class ByRead(msgspec.Struct, frozen=True):
    """Predictions for each task by the bytes that it reads."""

    memory: Line
    """Bytes."""
    runtime: Line
    """Seconds."""


class NextBag(msgspec.Struct, frozen=True):
    """The second bag of a kind, with what its user asked for and what the first bag said."""

    tasks: Sequence[TaskRecord]
    memory: int
    """Bytes that `mem=auto` asks for each task."""
    mean: float
    """Predicted mean of the runtimes."""
    margin: float
    """`memory` as a multiple of the largest peak of the first bag."""
    by_read: ByRead | None
    """None: what a task has read is not known."""

    def memory_of(self, task: TaskRecord) -> float:
        """Bytes to ask for a task by what it reads; as `mem=auto` if that is not known."""
        if self.by_read is None or task.read is None:
            return self.memory
        return self.margin * self.by_read.memory.most(task.read)

    def runtime_of(self, task: TaskRecord) -> float:
        """Seconds that a task takes by what it reads; the mean if that is not known."""
        if self.by_read is None or task.read is None:
            return self.mean
        return self.by_read.runtime.of(task.read)


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
            TaskRecord(
                kind=row["process"],
                submitted=submitted / 1e3,
                ran=ran / 1e3,
                limit=limit / 1e3,
                asked=int(asked),
                peak=int(peak),
                read=_read(row.get(_READ)),
            )
        )
    found.sort(key=lambda task: task.submitted)
    return found, [f"{counted(number, 'task')} left out: {why}" for why, number in left_out.items()]


def _read(text: str | None) -> float | None:
    """Bytes; None: the column is missing, or has no number above 0."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 < found < math.inf else None


def by_read(tasks: Sequence[TaskRecord]) -> ByRead | None:
    """Lines through the tasks of a bag; None: what one of them has read is not known."""
    reads = [task.read for task in tasks if task.read is not None]
    if len(reads) < len(tasks):
        return None
    return ByRead(_line(reads, [task.peak for task in tasks]), _line(reads, [task.ran for task in tasks]))


def _line(reads: Sequence[float], figures: Sequence[float]) -> Line:
    """The line of least squares; level if all have read the same, or if more reading means less."""
    center, middle = fmean(reads), fmean(figures)
    spread = sum((read - center) ** 2 for read in reads)
    together = sum((read - center) * (figure - middle) for read, figure in zip(reads, figures, strict=True))
    slope = max(0.0, together / spread) if spread else 0.0
    flat = Line(middle - slope * center, slope, min(figures), 0.0)
    above = max(figure - flat.of(read) for read, figure in zip(reads, figures, strict=True))
    return msgspec.structs.replace(flat, above=max(0.0, above))


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
            margin = memory / max(each.peak for each in first)
            found.append(NextBag(then, memory, earlier.mean, margin, by_read(first)))
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
    *("by input: wasted", "killed", "runtimes within factor 2 by mean", "by input"),
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
            *_by_input(its),
        )


def _by_input(bags: Sequence[NextBag]) -> Iterator[str]:
    """What the bytes that each task reads say of its memory, and of its runtime next to the mean."""
    found = [waste_of(task, bag.memory_of(task)) for bag in bags for task in bag.tasks]
    yield f"{sum(each.wasted for each in found) / _GB_HOURS:,.1f} GB·h"
    yield f"{sum(each.killed for each in found):,}"
    pairs = [(bag.mean, bag.runtime_of(task), task.ran) for bag in bags for task in bag.tasks]
    for told in (0, 1):
        near = sum(abs(math.log2(pair[told] / pair[2])) <= 1 for pair in pairs)
        yield f"{near / len(pairs):.0%}"
