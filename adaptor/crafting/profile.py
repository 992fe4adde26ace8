"""The availability profile: free processors over time, as a step function.

The data structure of conservative backfilling (De Rose §2; Mu'alem & Feitelson 2001). Copies, changes and
queries are cheap, because heuristics try plans on copies.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from adaptor.model import FreeSlot


class Profile:
    """Free processors from `start` on; times in epoch seconds. The last step never ends.

    Step i reaches from `_times[i]` to `_times[i + 1]` and has `_free[i]` processors; adjacent ones differ.
    """

    __slots__ = ("_free", "_times")

    def __init__(self, start: float, processors: int) -> None:
        self._times = [start]
        self._free = [processors]

    @classmethod
    def holding(cls, start: float, processors: int, holds: Iterable[tuple[float, float, int]]) -> Profile:
        """The profile of a site on which each hold `(begin, end, processors)` takes its processors.

        Where the holds exceed the processors (the scheduler knows better), none are free.
        """
        changes: dict[float, int] = {start: 0}
        for begin, end, held in holds:
            begin = max(begin, start)
            if begin < end:
                changes[begin] = changes.get(begin, 0) - held
                changes[end] = changes.get(end, 0) + held
        changes.pop(math.inf, None)
        profile = cls(start, processors)
        times, free = profile._times, profile._free
        left = processors
        for time in sorted(changes):
            left += changes[time]
            shown = max(left, 0)
            if time == start:
                free[0] = shown
            elif shown != free[-1]:
                times.append(time)
                free.append(shown)
        return profile

    @classmethod
    def of_steps(cls, steps: Sequence[tuple[float, int]]) -> Profile:
        """The profile of `(time, free processors from then on)`, in order of time; adjacent counts differ."""
        profile = cls.__new__(cls)
        profile._times = [time for time, _ in steps]
        profile._free = [free for _, free in steps]
        return profile

    def steps(self) -> list[tuple[float, int]]:
        """`(time, free processors from then on)`, in order of time."""
        return list(zip(self._times, self._free, strict=True))

    def copy(self) -> Profile:
        twin = Profile.__new__(Profile)
        twin._times = self._times.copy()
        twin._free = self._free.copy()
        return twin

    def free_at(self, time: float) -> int:
        """Free processors at `time` (before the start: those at the start)."""
        return self._free[max(0, bisect_right(self._times, time) - 1)]

    def minimum(self, start: float, end: float) -> int:
        """The fewest free processors at any instant of [start, end); those at `start` if it is empty."""
        first = max(0, bisect_right(self._times, start) - 1)
        last = bisect_left(self._times, end, first + 1)
        return min(self._free[first:last])

    def earliest_start(self, processors: int, duration: float, not_before: float = -math.inf) -> float:
        """The first time at which `processors` are free for `duration` seconds; `math.inf`: never."""
        return self._first_hole(processors, duration, not_before)[2]

    def place(self, processors: int, duration: float, not_before: float = -math.inf) -> float:
        """`take` them from the earliest start on, and return it; `math.inf`: there is none.

        A queue is planned by little else, so it is done in one walk over the steps.
        """
        first, index, begin = self._first_hole(processors, duration, not_before)
        if begin < math.inf:
            self._occupy(first, index, begin, begin + duration, processors)
        return begin

    def _first_hole(self, processors: int, duration: float, not_before: float) -> tuple[int, int, float]:
        """The step in which the first such hole begins, the first beyond it, and its begin or `math.inf`."""
        times, free = self._times, self._free
        count = len(times)
        index = max(0, bisect_right(times, not_before) - 1)
        while index < count:
            if free[index] < processors:
                index += 1
                continue
            first, begin = index, max(times[index], not_before)
            end = begin + duration
            index += 1
            while index < count and times[index] < end and free[index] >= processors:
                index += 1
            if index == count or times[index] >= end:
                return first, index, begin
        return count, count, math.inf

    def take(self, start: float, duration: float, processors: int) -> None:
        """Occupy processors during [start, start + duration).

        Raises:
            ValueError: fewer are free then; the profile stays unchanged.
        """
        least = self.minimum(start, start + duration)
        if least < processors:
            raise ValueError(f"{processors} processors wanted for {duration:g} s, but {least} are free")
        self._change(start, start + duration, -processors)

    def give(self, start: float, duration: float, processors: int) -> None:
        """Undo a `take` of the same arguments."""
        self._change(start, start + duration, processors)

    def free_slots(self) -> list[FreeSlot]:
        """All maximal rectangles under the profile, by start; of those with the same start the widest first.

        They overlap.
        """
        found = rectangles(zip(self._times, self._free, strict=True))
        slots = [FreeSlot(begin, end - begin, processors) for begin, end, processors, _ in found]
        slots.sort(key=attrgetter("processors"), reverse=True)
        slots.sort(key=attrgetter("start"))
        return slots

    def _occupy(self, first: int, last: int, begin: float, end: float, processors: int) -> None:
        """Take processors of [begin, end), which begins in step `first` and does not reach step `last`."""
        times, free = self._times, self._free
        if begin >= end or not processors:
            return
        if not math.isinf(end) and (last == len(times) or times[last] != end):
            times.insert(last, end)
            free.insert(last, free[last - 1])
        if times[first] != begin:
            first += 1
            last += 1
            times.insert(first, begin)
            free.insert(first, free[first - 1])
        for index in range(first, last):
            free[index] -= processors
        self._join(last)
        self._join(first)

    def _change(self, start: float, end: float, delta: int) -> None:
        start = max(start, self._times[0])
        if start >= end or not delta:
            return
        first = self._split(start)
        last = len(self._times) if math.isinf(end) else self._split(end)
        free = self._free
        for index in range(first, last):
            free[index] += delta
        self._join(last)
        self._join(first)

    def _split(self, time: float) -> int:
        """The index of the step that begins at `time`; inserts the step if it is missing."""
        index = bisect_left(self._times, time)
        if index == len(self._times) or self._times[index] != time:
            self._times.insert(index, time)
            self._free.insert(index, self._free[index - 1])
        return index

    def _join(self, index: int) -> None:
        """Merge a step with its predecessor if both have the same free processors."""
        if 0 < index < len(self._times) and self._free[index] == self._free[index - 1]:
            del self._times[index], self._free[index]


def rectangles(steps: Iterable[tuple[float, int]]) -> Iterator[tuple[float, float, int, int]]:
    """Maximal rectangles under `(time, processors from then on)`: begin, end, processors, and the number of
    these that are in longer ones.

    One sweep over the steps with a stack of open rectangles, O(n).
    """
    open_slots: list[tuple[float, int]] = []  # `(start, processors)`, in order of the processors
    for time, free in (*steps, (math.inf, 0)):
        begin = time
        while open_slots and open_slots[-1][1] > free:
            begin, processors = open_slots.pop()
            shared = max(free, open_slots[-1][1] if open_slots else 0)
            yield begin, time, processors, shared
        if free and (not open_slots or open_slots[-1][1] < free):
            open_slots.append((begin, free))
