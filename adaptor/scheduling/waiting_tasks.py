"""The numbers of the tasks that wait in one line: 4 bytes each, so that a million need no objects. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator

_PART = 4096
"""Tasks that an iteration copies at once."""
_LEAST_SPARE = 64
"""Places that are made at the head when it is full, at least."""


class WaitingTasks:
    """Task numbers in the order in which they wait; both ends take and give tasks in constant time."""

    def __init__(self, tasks: Iterable[int] = ()) -> None:
        self._tasks = array("I", tasks)
        self._begin = 0
        """Where the first stands; the places before it are spare."""

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
        """Raises ValueError: it does not wait here."""
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
