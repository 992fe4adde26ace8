"""Processors of its own for each task, if several run on a node, and the binding to them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

Unit = tuple[int, ...]  # the numbers of the kernel's processors that stand for one processor of the pilot
PhysicalCore = tuple[Unit, ...]


class Binding:
    """The processors that the scheduler gave this worker, handed out task by task.

    None are handed out where the worker may use others than those of its pilot, or fewer: another pilot would
    hand out the same.
    """

    def __init__(self, processors: int, cores: Sequence[PhysicalCore] | None = None) -> None:
        """`cores`: in their order; None: those of this machine that this process may use."""
        self._processors = processors
        self._given = cores
        self._held: dict[int, Unit] = {}  # by number of the kernel: the unit that a task holds

    @cached_property
    def _cores(self) -> Sequence[PhysicalCore]:
        """The kernel is asked when the first task starts."""
        if self._given is not None:
            return self._given
        return units_of(cores_of(sorted(affinity_of_process())), self._processors)

    def take(self, processors: int, wanted: Iterable[Sequence[int]] = ()) -> tuple[int, ...]:
        """The numbers of the processors for one more task; empty: it is not bound.

        The first of the `wanted` ones that are free; else whole cores first, then a part of the core that has
        the least left.
        """
        if not self._cores:
            return ()
        chosen: list[Unit] = self._wanted(processors, wanted)
        if chosen:
            return self._hold(chosen)
        for core in self._cores:
            free = self._free(core)
            if len(free) == len(core) <= processors - len(chosen):
                chosen += free
        frees = [[unit for unit in self._free(core) if unit not in chosen] for core in self._cores]
        missing = processors - len(chosen)
        for free in sorted(frees, key=lambda free: (len(free) < missing, len(free))):
            chosen += free[: processors - len(chosen)]
        return self._hold(chosen)

    def _wanted(self, processors: int, wanted: Iterable[Sequence[int]]) -> list[Unit]:
        """The units with all of the first of these numbers that are free; empty: there are none."""
        free = [unit for core in self._cores for unit in self._free(core)]
        for numbers in wanted:
            found = [unit for unit in free if set(unit) <= set(numbers)]
            if len(found) == processors and sum(map(len, found)) == len(numbers):
                return found
        return []

    def _hold(self, chosen: Sequence[Unit]) -> tuple[int, ...]:
        self._held.update((number, unit) for unit in chosen for number in unit)
        return tuple(sorted(number for unit in chosen for number in unit))

    def give_back(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self._held[number]

    def _free(self, core: PhysicalCore) -> list[Unit]:
        return [unit for unit in core if unit[0] not in self._held]


def units_of(cores: Sequence[tuple[int, ...]], processors: int) -> tuple[PhysicalCore, ...]:
    """The thread or core of each processor of a pilot; empty: neither adds up to them."""
    if sum(map(len, cores)) == processors:
        return tuple(tuple((number,) for number in core) for core in cores)
    if len(cores) == processors:
        return tuple((core,) for core in cores)
    return ()


def cores_of(numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """The processors by the core of which they are threads, in the order of the numbers: that of NUMA."""
    cores: dict[str, list[int]] = {}
    for number in numbers:
        cores.setdefault(_siblings(number), []).append(number)
    return [tuple(core) for core in cores.values()]


def _siblings(number: int) -> str:
    """The name of a processor's core; its own number where the kernel does not say."""
    path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
    try:
        return path.read_text(encoding="ascii").strip() or str(number)
    except (OSError, ValueError):
        return str(number)


def affinity_of_process() -> set[int]:
    """Numbers of the kernel's processors on which this process may run; empty: the system does not say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@contextlib.contextmanager
def bound(numbers: Sequence[int]) -> Iterator[None]:
    """Bind what this thread starts meanwhile to these processors; empty: to those of the thread itself.

    A processor that was taken away from the worker meanwhile leaves the task unbound.
    """
    if not numbers:
        yield
        return
    before = affinity_of_process()
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, numbers)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)
