"""The task slots of a site over time, for tasks of one kind: the sum over its nodes of what fits. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial

from adaptor.crafting.nodes.schedule import NodeSchedule
from adaptor.crafting.nodes.space import chunks_on
from adaptor.crafting.profile import Profile
from adaptor.model import FreeSlot
from adaptor.resources import Need

Steps = tuple[tuple[float, ...], tuple[int, ...]]
"""Instants, and the units free on a node from each on; adjacent ones differ."""


HANDOVERS = 100
"""Instants, from the first on, at which further free slots are looked for (`SlotProfile.free_slots`)."""


class SlotProfile(Profile):
    """Free processors over time that requests of one unit can use, on nodes.

    Each instant shows the units that all nodes hold then. A request stays on its nodes, so it can use fewer
    where one node comes free as another is taken: `minimum` counts the units that stay on their nodes, and
    `take` takes from nodes. Nodes that are alike at all times are one group until a request takes some.
    """

    __slots__ = ("_alike", "_each", "_handovers", "_start", "_taken", "_touched")

    def __init__(self, start: float, nodes: Iterable[Steps], processors: int) -> None:
        """`processors`: of one unit."""
        super().__init__(start, 0)
        self._start = start
        self._each = processors
        self._alike: dict[Steps, int] = defaultdict(int)
        """Nodes by what they have free, without those on which requests were taken."""
        for steps in nodes:
            self._alike[steps] += 1
        self._touched: dict[int, Profile] = {}
        """The units free on nodes on which requests were taken, by a number."""
        self._taken: dict[tuple[float, float, int], list[dict[int, int]]] = defaultdict(list)
        """By request `(start, duration, processors)`, each time that it was taken: units by touched node."""
        self._handovers: list[float] = []
        """Instants at which a node comes free and the sum does not rise, as others are taken."""
        self._add_up()

    def copy(self) -> SlotProfile:
        twin = SlotProfile.__new__(SlotProfile)
        twin._times, twin._free = self._times.copy(), self._free.copy()
        twin._start, twin._each, twin._handovers = self._start, self._each, self._handovers
        twin._alike = self._alike.copy()
        twin._touched = {number: node.copy() for number, node in self._touched.items()}
        twin._taken = defaultdict(list, {key: list(each) for key, each in self._taken.items()})
        return twin

    def minimum(self, start: float, end: float, enough: float = math.inf) -> int:
        wanted = enough / self._each
        units = sum(node.minimum(start, end) for node in self._touched.values())
        for steps, count in self._alike.items():
            if units >= wanted:  # a large site has thousands of nodes, and few hold what a request asks for
                break
            units += count * _least(steps, start, end)
        return units * self._each

    def earliest_start(self, processors: int, duration: float, not_before: float = -math.inf) -> float:
        while (start := super().earliest_start(processors, duration, not_before)) < math.inf:
            if self.minimum(start, start + duration, processors) >= processors:
                return start
            not_before = min(_next(self._times, start), _next(self._handovers, start))
        return math.inf

    def free_slots(self) -> list[FreeSlot]:
        """See `Profile.free_slots`; and the widest slot from each instant on at which a node comes free.

        A request that starts there may stay on its nodes, where one from an earlier start could not.
        """
        later = [self._widest_from(time) for time in self._handovers[:HANDOVERS]]
        slots = [*super().free_slots(), *(slot for slot in later if slot.processors)]
        return sorted(slots, key=lambda slot: (slot.start, -slot.processors))

    def _widest_from(self, time: float) -> FreeSlot:
        first = bisect_right(self._times, time) - 1
        processors = self._free[first]
        later = range(first + 1, len(self._times))
        end = next((self._times[step] for step in later if self._free[step] < processors), math.inf)
        return FreeSlot(time, end - time, processors)

    def take(self, start: float, duration: float, processors: int) -> None:
        least = self.minimum(start, start + duration, processors)
        if least < processors:
            raise ValueError(f"{processors} processors wanted for {duration:g} s, but {least} are free")
        left, units = math.ceil(processors / self._each), {}
        for number, there in self._with_room(start, start + duration):
            units[number] = min(left, there)
            self._touched[number].take(start, duration, units[number])
            left -= units[number]
            if not left:
                break
        self._taken[start, duration, processors].append(units)
        self._change(start, start + duration, -processors)

    def give(self, start: float, duration: float, processors: int) -> None:
        for number, units in self._taken[start, duration, processors].pop().items():
            self._touched[number].give(start, duration, units)
        self._change(start, start + duration, processors)

    def _with_room(self, start: float, end: float) -> Iterator[tuple[int, int]]:
        """Touched nodes with the units that they have free, the others drawn from their groups as needed."""
        for number, node in list(self._touched.items()):
            if there := node.minimum(start, end):
                yield number, there
        for steps in list(self._alike):
            there = _least(steps, start, end)
            while there and self._alike[steps]:
                self._alike[steps] -= 1
                number = len(self._touched)
                self._touched[number] = Profile.of_steps(list(zip(*steps, strict=True)))
                yield number, there

    def _add_up(self) -> None:
        changes: dict[float, int] = {self._start: 0}
        rises = set()
        for steps, count in self._alike.items():
            before = 0
            for time, units in zip(*steps, strict=True):
                changes[time] = changes.get(time, 0) + (units - before) * count
                if units > before:
                    rises.add(time)
                before = units
        times: list[float] = []
        free: list[int] = []
        units = 0
        for time in sorted(changes):
            units += changes[time]
            if not free or units * self._each != free[-1]:
                times.append(time)
                free.append(units * self._each)
        self._times, self._free = times, free
        self._handovers = sorted(time for time in rises if changes[time] <= 0)


def slot_profile(schedule: NodeSchedule, unit: Need, now: float) -> SlotProfile:
    """The slots of one chunk of `unit` on all nodes of a schedule."""
    ask = schedule.space.of(unit)
    fitting = cache(partial(chunks_on, ask=ask))  # on most nodes the same is free
    nodes = []
    for node in schedule.space.lists[ask.among]:
        capacity = schedule.space.capacity[node]
        times, free = schedule.steps[node]
        counts = [fitting(there, capacity) for there in free]
        if any(counts):
            nodes.append(_joined(times, counts))
    return SlotProfile(now, nodes, unit.processors)


def _joined(times: list[float], counts: list[int]) -> Steps:
    """Adjacent steps with the same count as one step."""
    changes = [place for place, count in enumerate(counts) if not place or count != counts[place - 1]]
    return tuple([times[place] for place in changes]), tuple([counts[place] for place in changes])


def _least(steps: Steps, start: float, end: float) -> int:
    times, counts = steps
    first = max(0, bisect_right(times, start) - 1)
    last = bisect_left(times, end, first + 1)
    return counts[first] if last == first + 1 else min(counts[first:last])


def _next(times: list[float], after: float) -> float:
    place = bisect_right(times, after)
    return times[place] if place < len(times) else math.inf
