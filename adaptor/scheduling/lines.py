"""The lines in which the tasks of one bag wait: one for each class of sizes (see `task_sizes`). Pure.

Their numbers take 4 bytes each, so that a million need no objects.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

from adaptor.resources import Room, TaskSize
from adaptor.scheduling.task_sizes import MOST, TaskSizes, class_of, classes_of

_PART = 4096  # tasks that an iteration copies at once
_LEAST_SPARE = 64  # places that are made at the head when it is full, at least


class WaitingTasks:
    """Task numbers in the order in which they wait; both ends take and give tasks in constant time."""

    def __init__(self, tasks: Iterable[int] = ()) -> None:
        self._tasks = array("I", tasks)
        self._begin = 0  # place of the first task; the places before it are spare

    def __len__(self) -> int:
        return len(self._tasks) - self._begin

    def __iter__(self) -> Iterator[int]:
        for begin in range(self._begin, len(self._tasks), _PART):
            yield from self._tasks[begin : begin + _PART]

    def __getitem__(self, position: int) -> int:
        """The task at a position from 0 on. Raises IndexError."""
        return self._tasks[self._begin + position]

    def head(self, count: int) -> array[int]:
        """The first tasks, `count` at most."""
        return self._tasks[self._begin : self._begin + count]

    def append(self, task: int) -> None:
        self._tasks.append(task)

    def extend(self, tasks: Iterable[int]) -> None:
        self._tasks.extend(tasks)

    def appendleft(self, task: int) -> None:
        if not self._begin:
            self._begin = max(_LEAST_SPARE, len(self._tasks) // 8)
            self._tasks[:0] = array("I", bytes(self._tasks.itemsize * self._begin))
        self._begin -= 1
        self._tasks[self._begin] = task

    def take(self, position: int) -> int:
        """Take away the task at a position; returns it. Raises IndexError."""
        task = self[position]
        self._delete(self._begin + position)
        return task

    def remove(self, task: int) -> None:
        """Remove a task from the line. Raises ValueError: it does not wait here."""
        self._delete(self._tasks.index(task, self._begin))

    def drop(self, unwanted: Callable[[int], bool], count: int) -> None:
        """Take away the `count` tasks that are unwanted; the fewer stand behind others, the faster."""
        while count and self and unwanted(self[0]):
            self._delete(self._begin)
            count -= 1
        if count:
            self._tasks = array("I", (task for task in self if not unwanted(task)))
            self._begin = 0

    def _delete(self, place: int) -> None:
        if place != self._begin:
            del self._tasks[place]
            return
        self._begin += 1
        if self._begin > _PART and 2 * self._begin > len(self._tasks):
            del self._tasks[: self._begin]
            self._begin = 0


LOOKAHEAD = 64  # tasks at the head of a line of different tasks among which one is looked for that fits


class Line:
    """Waiting tasks of one class, in the order of their bag."""

    def __init__(self, number: int, size: TaskSize | None, sizes: TaskSizes) -> None:
        """`size`: of the class; None: of the next task."""
        self.number = number
        self.size = size
        self.waiting = WaitingTasks()
        self.most = 0  # the most tasks that have waited here at the same time
        self._sizes = sizes
        self._times: Counter[float] = Counter()
        """Number of waiting tasks by their expected time (seconds, rounded up to two digits)."""

    @property
    def task(self) -> TaskSize:
        """The size for which places are looked for: no task of the class but those of the rest is larger."""
        if self.size is not None:
            return self.size
        return self._sizes.of(self.waiting[0]) if self.waiting else self._sizes.usual

    @property
    def mixed(self) -> bool:
        """True if its tasks may differ in size or expected time."""
        return self._sizes.mixed

    @property
    def times(self) -> list[float]:
        """The different times (seconds) that the waiting tasks are expected to take."""
        return list(self._times)

    @property
    def untimed(self) -> int:
        """Waiting tasks of which no time is expected."""
        return len(self.waiting) - self._times.total()

    def admits(self, task: int, room: Room) -> bool:
        """True if a task fits where places were found for its class; `room`: that of the worker."""
        if not self.mixed:
            return True
        size = self._sizes.of(task)
        return room.holds(size) if size.nodes == 1 else self.task.covers(size)

    def append(self, task: int) -> None:
        self.waiting.append(task)
        self._came(task)

    def appendleft(self, task: int) -> None:
        self.waiting.appendleft(task)
        self._came(task)

    def extend(self, tasks: Iterable[int]) -> None:
        """Queue tasks in this order."""
        if self._sizes.timed:
            for task in tasks:
                self.append(task)
            return
        self.waiting.extend(tasks)
        self.most = max(self.most, len(self.waiting))

    def remove(self, task: int) -> None:
        """Remove a task from the line. Raises ValueError: it does not wait here."""
        self.waiting.remove(task)
        self._went(task)

    def take(self, position: int) -> int:
        """Take the task at this position off the line."""
        task = self.waiting.take(position)
        self._went(task)
        return task

    def drop(self, tasks: Collection[int]) -> None:
        """Take tasks that wait here off the line."""
        self.waiting.drop(tasks.__contains__, len(tasks))
        for task in tasks:
            self._went(task)

    def _came(self, task: int) -> None:
        self.most = max(self.most, len(self.waiting))
        if self._sizes.timed and (time := self._sizes.time(task)) is not None:
            self._times[_rounded(time)] += 1

    def _went(self, task: int) -> None:
        if self._sizes.timed and (time := self._sizes.time(task)) is not None:
            self._times[_rounded(time)] -= 1
            if not self._times[_rounded(time)]:
                del self._times[_rounded(time)]


class Lines:
    """All lines of a bag, the largest class first."""

    def __init__(self, sizes: TaskSizes, total: int) -> None:
        self._sizes = sizes
        self._all = [Line(number, size, sizes) for number, size in enumerate(classes_of(sizes.counts(total)))]
        self._known: dict[TaskSize, Line] = {}
        self._rest: Line | None = None

    def __iter__(self) -> Iterator[Line]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def of(self, task: int) -> Line:
        """The line in which the task stands while it waits."""
        if len(self._all) == 1 and not self._sizes.mixed:
            return self._all[0]
        size = self._sizes.of(task)
        line = self._known.get(size)
        if line is None:
            line = self._known[size] = self._find(size)
        return line

    def _find(self, size: TaskSize) -> Line:
        classes = {line.size: line for line in self._all if line.size is not None}
        if size not in classes and len(classes) < MOST:
            return self._new(size)
        if (found := class_of(size, classes)) is not None:
            return classes[found]
        if self._rest is None:
            self._rest = self._new(None)
        return self._rest

    def _new(self, size: TaskSize | None) -> Line:
        line = Line(len(self._all), size, self._sizes)
        self._all.append(line)
        return line

    @property
    def any_waits(self) -> bool:
        """True if any task waits."""
        return any(line.waiting for line in self._all)

    @property
    def waiting(self) -> Iterator[int]:
        """The tasks of all lines, one line after the other."""
        return chain.from_iterable(line.waiting for line in self._all)

    def by_turn(self, *, in_file_order: bool) -> list[Line]:
        """The lines with waiting tasks, the one that is to be served next first.

        In the order of the file, that of the lowest next task; else that of which the largest part waits.
        """
        open_lines = [line for line in self._all if line.waiting]
        if in_file_order:
            return sorted(open_lines, key=lambda line: line.waiting[0])
        return sorted(open_lines, key=lambda line: -len(line.waiting) / line.most)

    def extend(self, tasks: Iterable[int]) -> None:
        """Queue tasks in this order."""
        if len(self._all) == 1 and not self._sizes.mixed:
            self._all[0].extend(tasks)
            return
        for task in tasks:
            self.of(task).append(task)

    def drop(self, tasks: Iterable[int]) -> None:
        """Take tasks that wait off their lines."""
        by_line: dict[int, set[int]] = {}
        for task in tasks:
            by_line.setdefault(self.of(task).number, set()).add(task)
        for number, some in by_line.items():
            self._all[number].drop(some)

    def let_go_of(self, size: TaskSize) -> None:
        """Look for no place that is larger than the next task, in the class of this size."""
        for line in self._all:
            if line.size == size and self._sizes.mixed:
                line.size = None


def _rounded(seconds: float) -> float:
    """Seconds rounded up to two digits, so that there are few different times."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return math.ceil(seconds / step - 1e-9) * step
