"""What an earlier bag of a kind says of the next one, next to what its user asked for.

Of each kind of task, those submitted first are one bag, whose record is what the journal would keep of it;
the others are the next bag.

Next to what the earlier bag says of all tasks alike stands what the size of its input would say of a task: a
line through the first bag (Ponder; Sizey, Bader et al. 2024, has it among others). Traces of Nextflow have
no size of the inputs but the bytes that a task has read, known after the run only: there it is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

import msgspec

from adaptor.bag_spec import TaskKind
from adaptor.journal.kind_rows import GROWTH
from adaptor.kinds.earlier import earlier_tasks, memory_needed, record_of
from adaptor.runtimes.known import EarlierTasks
from adaptor.units import counted
from adaptor_experiments.task_records import TaskRecord

_FEWEST = 5  # tasks of each of the two bags of a kind
_GB_HOURS = 1e9 * 3600
_SITE = "site"


class Waste(msgspec.Struct, frozen=True):
    """Wasted memory of the attempts of tasks; byte seconds."""

    wasted: float = 0.0
    killed: int = 0
    """Attempts that needed more than they had, and are made again with more."""


class Line(msgspec.Struct, frozen=True):
    """A figure of a task by the bytes of its input, as in an earlier bag."""

    start: float
    slope: float
    least: float
    """The smallest figure of the earlier bag: no task is foreseen to be below."""
    above: float
    """By which the figure of a task of the earlier bag was above the line, at most."""

    def of(self, size: float) -> float:
        return max(self.least, self.start + self.slope * size)

    def most(self, size: float) -> float:
        """The figure that no task of the earlier bag would have exceeded."""
        return self.of(size) + self.above


class NextBag(msgspec.Struct, frozen=True):
    """The second bag of a kind, and what the first bag said."""

    tasks: Sequence[TaskRecord]
    earlier: EarlierTasks
    memory: int | None
    """Bytes that `mem=auto` asks for each task; None: no peak is known."""
    margin: float
    """`memory` as a multiple of the largest peak of the first bag; 0: no peak is known."""
    peak_by_input: Line | None
    """Bytes of memory; None: what it would need is not known of each task."""
    runtime_by_input: Line | None
    """Seconds; None: the input of a task is not known."""

    @property
    def measured(self) -> list[TaskRecord]:
        """The tasks whose memory can be compared with what is asked for them."""
        return [] if self.memory is None else [task for task in self.tasks if task.peak is not None]

    def memory_of(self, task: TaskRecord) -> float:
        """Bytes to ask for a task by its input; as `mem=auto` if that is not known."""
        if self.peak_by_input is None or task.input is None:
            return self.memory or 0.0
        return self.margin * self.peak_by_input.most(task.input)

    def runtime_of(self, task: TaskRecord) -> float:
        """Seconds that a task takes by its input; the mean if that is not known."""
        if self.runtime_by_input is None or task.input is None:
            return self.earlier.mean
        return self.runtime_by_input.of(task.input)


def line_by_input(tasks: Sequence[TaskRecord], figures: Sequence[float | None]) -> Line | None:
    """The line of least squares through the figures of the tasks; None: one, or an input, is not known.

    It is level if all have the same input, or if more input means less.
    """
    pairs = [
        (task.input, figure)
        for task, figure in zip(tasks, figures, strict=True)
        if task.input is not None and figure is not None
    ]
    if len(pairs) < len(tasks):
        return None
    center, middle = fmean(size for size, _ in pairs), fmean(figure for _, figure in pairs)
    spread = sum((size - center) ** 2 for size, _ in pairs)
    together = sum((size - center) * (figure - middle) for size, figure in pairs)
    slope = max(0.0, together / spread) if spread else 0.0
    flat = Line(middle - slope * center, slope, min(figure for _, figure in pairs), 0.0)
    above = max(figure - flat.of(size) for size, figure in pairs)
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
        peaks = [each.peak for each in first if each.peak is not None]
        kept = {name: {_SITE: [record_of(len(first), [each.ran for each in first], peaks)]}}
        memory, earlier = memory_needed([kind], kept), earlier_tasks([kind], kept, _SITE)
        if earlier is not None:
            found.append(
                NextBag(
                    tasks=then,
                    earlier=earlier,
                    memory=memory,
                    margin=0.0 if memory is None else memory / max(peaks),
                    peak_by_input=line_by_input(first, [each.peak for each in first]),
                    runtime_by_input=line_by_input(first, [each.ran for each in first]),
                )
            )
    return found


def waste_of(peak: int, ran: float, asked: float) -> Waste:
    """If a task asks for this, and after a kill for `GROWTH` times as much; a killed attempt runs as long."""
    wasted, killed = 0.0, 0
    while asked < peak:
        wasted, killed, asked = wasted + asked * ran, killed + 1, asked * GROWTH
    return Waste(wasted + (asked - peak) * ran, killed)


HEADINGS = (
    *("workflow", "kinds", "tasks", "used", "asked: wasted", "mem=auto: wasted", "killed"),
    *("time limit ÷ runtime", "mean within factor 2"),
    *("by input: wasted", "killed", "runtimes within factor 2 by mean", "by input"),
)


def table(bags: Mapping[str, Sequence[NextBag]]) -> Iterator[tuple[str, ...]]:
    """By workflow: GB·h of memory used and wasted, attempts killed, and what is known of the runtimes.

    Memory is that of the tasks whose peak is known. Empty: the records do not say.
    """
    for name, its in bags.items():
        tasks = [task for bag in its for task in bag.tasks]
        if not tasks:
            yield name, "0", *("",) * (len(HEADINGS) - 2)
            continue
        measured = [(bag, task, task.peak) for bag in its for task in bag.measured if task.peak is not None]
        used = sum(peak * task.ran for _, task, peak in measured)
        auto = [waste_of(peak, task.ran, bag.memory or 0) for bag, task, peak in measured]
        by_size = [waste_of(peak, task.ran, bag.memory_of(task)) for bag, task, peak in measured]
        asked = [waste_of(peak, task.ran, task.asked) for _, task, peak in measured if task.asked is not None]
        limits = [task.limit / task.ran for task in tasks if task.limit is not None]
        near = [_near(bag.earlier.mean, fmean(task.ran for task in bag.tasks)) for bag in its]
        yield (
            *(name, str(len(its)), f"{len(tasks):,}"),
            _gb_hours([used] if measured else []),
            _gb_hours([each.wasted for each in asked] if len(asked) == len(measured) else []),
            *_wasted(auto),
            f"{median(limits):,.0f}" if len(limits) == len(tasks) else "",
            f"{sum(near)} of {counted(len(its), 'kind')}",
            *_wasted(by_size),
            f"{fmean(_near(bag.earlier.mean, task.ran) for bag in its for task in bag.tasks):.0%}",
            f"{fmean(_near(bag.runtime_of(task), task.ran) for bag in its for task in bag.tasks):.0%}",
        )


def _near(told: float, came: float) -> bool:
    """Whether the two are within a factor of two."""
    return abs(math.log2(told / came)) <= 1


def _wasted(found: Sequence[Waste]) -> tuple[str, str]:
    """Memory, and attempts killed; empty: of no task."""
    return _gb_hours(
        [each.wasted for each in found]
    ), f"{sum(each.killed for each in found):,}" if found else ""


def _gb_hours(figures: Sequence[float]) -> str:
    """Their sum; empty: there are none."""
    return f"{sum(figures) / _GB_HOURS:,.1f} GB·h" if figures else ""
