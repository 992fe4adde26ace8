"""The sizes of the tasks of a bag, and the few classes of sizes in which its tasks wait. Pure.

Most bags have one size, and one class. A bag of tasks with sizes of their own has a class for each size, up
to `MOST`: requests are made for a class, and each costs a look at the whole queue. Of more sizes, some are
chosen: first those that no other covers, then some between them, so that each holds about as many tasks. A
task is of the class of the smallest chosen size that covers its own; it gets a place of its own size anyway.
Where even those that no other covers are too many, the tasks of the rest stand in one more class, whose size
is that of its next task: it changes as they start, so that each gets its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from adaptor.resources import OwnNeeds, TaskSize

MOST = 8  # classes of a bag, besides that of the rest


class TaskSizes:
    """The size of each task of a bag."""

    def __init__(self, usual: TaskSize, own: Mapping[int, OwnNeeds] | None = None) -> None:
        """`own`: by task that has needs of its own. Raises ValueError: they contradict each other."""
        self.usual = usual
        self._sizes: dict[int, TaskSize] = {}  # by task whose size is not the usual one
        self._times: dict[int, float] = {}
        self._timed = 0.0  # the sum of these times
        self.add(own or {})

    def add(self, own: Mapping[int, OwnNeeds]) -> None:
        """Take in the needs of tasks before they wait. Raises ValueError: they contradict each other."""
        known: dict[OwnNeeds, TaskSize] = {}
        for task, needs in own.items():
            if needs not in known:
                known[needs] = needs.over(self.usual)
            if known[needs] != self.usual:
                self._sizes[task] = known[needs]
            self._set_time(task, needs.time)

    def change(self, task: int, needs: OwnNeeds) -> None:
        """Replace the needs of a task that does not wait by those given. Raises ValueError: as `add`."""
        size = needs.over(self.of(task))
        self._sizes[task] = size
        if size == self.usual:
            del self._sizes[task]
        self._set_time(task, needs.time)

    def _set_time(self, task: int, time: float | None) -> None:
        if time is not None:
            self._timed += time - self._times.get(task, 0.0)
            self._times[task] = time

    def of(self, task: int) -> TaskSize:
        return self._sizes.get(task, self.usual)

    def time(self, task: int) -> float | None:
        """Seconds that its user expects it to take; None: the user has not said."""
        return self._times.get(task)

    def mean_time(self, tasks: int, others: float | None) -> float | None:
        """Mean seconds of the tasks of the bag, if those without a time take `others`; None: not known of
        all."""
        untimed = tasks - len(self._times)
        if not self._times or (untimed and others is None):
            return others
        return (self._timed + untimed * (others or 0.0)) / tasks

    @property
    def mixed(self) -> bool:
        """True if some tasks have a size or a time of their own."""
        return bool(self._sizes or self._times)

    @property
    def timed(self) -> bool:
        """True if some tasks have a time of their own."""
        return bool(self._times)

    def counts(self, total: int) -> dict[TaskSize, int]:
        """Number of the bag's tasks of each size."""
        found = Counter(self._sizes.values())
        if total > len(self._sizes) or not found:
            found[self.usual] = total - len(self._sizes)
        return found

    def resize(self, task: int, memory: int) -> None:
        """Set the memory (bytes) of a task that does not wait, from now on."""
        self._sizes[task] = msgspec.structs.replace(self.of(task), memory=memory)


def classes_of(sizes: Mapping[TaskSize, int]) -> list[TaskSize]:
    """The sizes that stand for classes, the largest first. `sizes`: the tasks of each size."""
    ordered = sorted(sizes, key=_extent, reverse=True)
    if len(ordered) <= MOST:
        return ordered
    chosen = _uncovered(ordered)
    rest = [size for size in ordered if size not in chosen]
    return sorted({*chosen, *_evenly(rest, sizes, MOST - len(chosen))}, key=_extent, reverse=True)


def class_of(size: TaskSize, classes: Collection[TaskSize]) -> TaskSize | None:
    """The smallest class that covers a size; None: none does. `classes`: as `classes_of` has them."""
    if size in classes:
        return size
    return min((known for known in classes if known.covers(size)), key=_extent, default=None)


def _uncovered(ordered: Iterable[TaskSize]) -> list[TaskSize]:
    """The first sizes that no other covers; of `ordered`, none covers one that stands before it."""
    found: list[TaskSize] = []
    for size in ordered:
        if len(found) < MOST and not any(known.covers(size) for known in found):
            found.append(size)
    return found


def _evenly(rest: list[TaskSize], tasks: Mapping[TaskSize, int], most: int) -> list[TaskSize]:
    """Sizes among these, at most `most`, with about the same number of tasks between two of them."""
    if most <= 0:
        return []
    step = sum(tasks[size] for size in rest) / (most + 1)
    found: list[TaskSize] = []
    passed = 0.0
    for size in rest:
        passed += tasks[size]
        if passed >= step * (len(found) + 1) and len(found) < most:
            found.append(size)
    return found


def _extent(size: TaskSize) -> tuple[object, ...]:
    """Sizes in an order in which none covers a larger one."""
    return size.nodes, size.processors, size.gpus, size.memory or 0, size.gpu_type
