"""The task slots of a site over time, for tasks of one kind: the sum over its nodes of what fits. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress, pairwise
from operator import itemgetter, ne

from adaptor.crafting.nodes.schedule import NodeSchedule
from adaptor.crafting.nodes.space import PROCESSORS, Ask, Space, Vector, chunks_on
from adaptor.crafting.profile import Profile, rectangles
from adaptor.model import FreeSlot
from adaptor.resources import Need

Steps = tuple[tuple[float, ...], tuple[int, ...]]
"""Instants, and the units free on a node from each on; adjacent ones differ."""


HANDOVERS = 100
"""Instants, from the first on, at which further free slots are looked for (`SlotProfile.free_slots`)."""

DURATIONS = 8
"""Durations for which the windows are remembered, at most: some 5 MB each for the largest queues."""


class _Nodes:
    """Nodes before any request takes of them, those alike at all times as one group. Never changed."""

    def __init__(self, start: float, nodes: Iterable[Steps]) -> None:
        alike = Counter(nodes)
        self.groups, self.counts = list(alike), list(alike.values())
        self.times, self.units = list[float](), list[int]()  # the units of all of them from each instant on
        layers = [
            (end, begin, count * units)
            for steps, count in alike.items()
            for begin, end, units in _layers(zip(*steps, strict=True))
        ]
        layers.sort(key=itemgetter(0))
        self._ends = [end for end, _, _ in layers]
        self._begins = [begin for _, begin, _ in layers]
        self._units = [units for _, _, units in layers]
        changes = defaultdict[float, int](int, {start: 0})
        for end, begin, units in layers:
            changes[begin] += units
            changes[end] -= units
        changes.pop(math.inf, None)
        units = 0
        for time in sorted(changes):
            units += changes[time]
            if not self.units or units != self.units[-1]:
                self.times.append(time)
                self.units.append(units)
        self.handovers = sorted(time for time in set(self._begins) if changes[time] <= 0)
        """Instants at which a node comes free and the sum does not rise, as others are taken."""
        self._staying: dict[float, _Staying] = {}

    def staying(self, duration: float) -> _Staying:
        """Windows of all nodes that stay free for a duration. Heuristics try few durations, but often."""
        if duration not in self._staying:
            if len(self._staying) == DURATIONS:
                self._staying.clear()
            self._staying[duration] = _Staying(duration)
            self._staying[duration].add(zip(self._begins, self._ends, self._units, strict=True), 1)
        return self._staying[duration]

    def least(self, start: float, end: float, drawn: Mapping[int, int]) -> int:
        """The units that stay free during [start, end), without this number of nodes of each group.

        Those of `start`, less the layers that end in between.
        """
        start = max(start, self.times[0])
        units = self.units[bisect_right(self.times, start) - 1]
        first = bisect_right(self._ends, start)
        last = bisect_left(self._ends, end, first)
        layers = zip(self._begins[first:last], self._units[first:last], strict=True)
        units -= sum(lost for begin, lost in layers if begin <= start)
        return units - sum(count * _least(self.groups[group], start, end) for group, count in drawn.items())


class _Staying:
    """The units that stay on their nodes during a window of some seconds, by its start.

    They are the layers of the steps of each node that begin before the window and end after it.
    """

    def __init__(self, duration: float) -> None:
        self.duration = duration
        self._begins, self._ends = Counter[float](), Counter[float]()
        """Units, by the instants at which layers as long as the window begin and end."""

    def copy(self) -> _Staying:
        twin = _Staying(self.duration)
        twin._begins, twin._ends = self._begins.copy(), self._ends.copy()
        return twin

    def add(self, layers: Iterable[tuple[float, float, int]], count: int) -> None:
        """Layers `(begin, end, units)` of a number of nodes; below 0, they are gone."""
        begins, ends, duration = self._begins, self._ends, self.duration
        for begin, end, units in layers:
            if begin + duration <= end:
                begins[begin] += count * units
                ends[end] += count * units

    def next_with(self, units: int, after: float) -> float:
        """The first start after an instant with that many units, if fewer are there at that instant."""
        there, ends = 0, iter(sorted(self._ends))
        end = next(ends, math.inf)
        for begin in sorted(self._begins):
            there += self._begins[begin]
            while end < begin + self.duration:
                there -= self._ends[end]
                end = next(ends, math.inf)
            if begin > after and there >= units:
                return begin
        return math.inf


class SlotProfile(Profile):
    """Free processors over time that requests of one unit can use, on nodes.

    Each instant shows the units that all nodes hold then. A request stays on its nodes, so it can use fewer
    where one node comes free as another is taken: `minimum` counts the units that stay on their nodes, and
    `take` takes from nodes. Where these are known until some time only, requests use any node from then on.
    """

    __slots__ = ("_drawn", "_each", "_nodes", "_rest", "_staying", "_taken", "_touched", "_until")

    def __init__(
        self,
        start: float,
        nodes: Iterable[Steps],
        processors: int,
        until: float = math.inf,
        rest: Profile | None = None,
    ) -> None:
        """
        Args:
            processors: of one unit.
            until: no step of a node begins later.
            rest: units from then on.
        """
        self._each, self._until, self._rest = processors, until, rest or Profile(start, 0)
        self._nodes = _Nodes(start, nodes)
        self._times = self._nodes.times.copy()
        self._free = [units * processors for units in self._nodes.units]
        for time, units in self._rest.steps() if until < math.inf else ():
            if self._free[-1] != units * processors:
                self._times.append(time)
                self._free.append(units * processors)
        self._drawn: dict[int, int] = {}  # by group: the nodes on which requests were taken
        self._touched: dict[int, Profile] = {}  # the units free on these, by a number
        self._taken: dict[tuple[float, float, int], list[dict[int, int]]] = defaultdict(list)
        """Units by touched node for each time that a request `(start, duration, processors)` was taken."""
        self._staying: _Staying | None = None  # kept until something is taken (`_stays`)

    def copy(self) -> SlotProfile:
        twin = SlotProfile.__new__(SlotProfile)
        twin._times, twin._free = self._times.copy(), self._free.copy()
        twin._each, twin._nodes, twin._drawn = self._each, self._nodes, self._drawn.copy()
        twin._touched = {number: node.copy() for number, node in self._touched.items()}
        twin._until, twin._rest, twin._staying = self._until, self._rest.copy(), self._staying
        twin._taken = defaultdict(list, {key: list(each) for key, each in self._taken.items()})
        return twin

    def minimum(self, start: float, end: float) -> int:
        return self._units(start, end) * self._each

    def _units(self, start: float, end: float) -> int:
        """Number of units that are free in a window."""
        if end <= self._until:
            return self._on_nodes(start, end)
        rest = self._rest.minimum(max(start, self._until), end)
        return rest if start >= self._until else min(rest, self._on_nodes(start, self._until))

    def _on_nodes(self, start: float, end: float) -> int:
        touched = sum(node.minimum(start, end) for node in self._touched.values())
        return touched + self._nodes.least(start, end, self._drawn)

    def earliest_start(self, processors: int, duration: float, not_before: float = -math.inf) -> float:
        units = math.ceil(processors / self._each)
        while (start := super().earliest_start(processors, duration, not_before)) < math.inf:
            if self._units(start, start + duration) >= units:
                return start
            unknown = max(bisect_right(self._times, start), bisect_left(self._times, self._until))
            stays = self._stays(duration).next_with(units, start)
            not_before = min([stays, *self._times[unknown : unknown + 1]])
        return math.inf

    def _stays(self, duration: float) -> _Staying:
        if self._staying is None or self._staying.duration != duration:
            self._staying = self._nodes.staying(duration).copy()
            for group, count in self._drawn.items():
                self._staying.add(_layers(zip(*self._nodes.groups[group], strict=True)), -count)
            for node in self._touched.values():
                self._staying.add(_layers(node.steps()), 1)
        return self._staying

    def free_slots(self) -> list[FreeSlot]:
        """Free slots of the profile, and the widest slot from each instant on at which a node comes free.

        A request that starts there may stay on its nodes, where one from an earlier start could not.
        """
        later = [self._widest_from(time) for time in self._nodes.handovers[:HANDOVERS]]
        slots = [*super().free_slots(), *(slot for slot in later if slot.processors)]
        return sorted(slots, key=lambda slot: (slot.start, -slot.processors))

    def _widest_from(self, time: float) -> FreeSlot:
        first = bisect_right(self._times, time) - 1
        processors = self._free[first]
        later = range(first + 1, len(self._times))
        end = next((self._times[step] for step in later if self._free[step] < processors), math.inf)
        return FreeSlot(time, end - time, processors)

    def take(self, start: float, duration: float, processors: int) -> None:
        least = self.minimum(start, start + duration)
        if least < processors:
            raise ValueError(f"{processors} processors wanted for {duration:g} s, but {least} are free")
        wanted = math.ceil(processors / self._each)
        left, units, known = wanted, dict[int, int](), min(start + duration, self._until) - start
        for number, there in self._with_room(start, start + known) if known > 0 else ():
            units[number] = min(left, there)
            self._touched[number].take(start, known, units[number])
            left -= units[number]
            if not left:
                break
        self._taken[start, duration, processors].append(units)
        self._staying = None
        self._rest._change(max(start, self._until), start + duration, -wanted)
        self._change(start, start + duration, -processors)

    def give(self, start: float, duration: float, processors: int) -> None:
        self._staying = None
        known = min(start + duration, self._until) - start
        for number, units in self._taken[start, duration, processors].pop().items():
            self._touched[number].give(start, known, units)
        self._rest._change(max(start, self._until), start + duration, math.ceil(processors / self._each))
        self._change(start, start + duration, processors)

    def _with_room(self, start: float, end: float) -> Iterator[tuple[int, int]]:
        """Touched nodes with the units that they have free, the others drawn from their groups as needed."""
        for number, node in list(self._touched.items()):
            if there := node.minimum(start, end):
                yield number, there
        for group, steps in enumerate(self._nodes.groups):
            there = _least(steps, start, end)
            while there and self._drawn.get(group, 0) < self._nodes.counts[group]:
                self._drawn[group] = self._drawn.get(group, 0) + 1
                number = len(self._touched)
                self._touched[number] = Profile.of_steps(list(zip(*steps, strict=True)))
                yield number, there


def slot_profile(schedule: NodeSchedule, unit: Need, now: float) -> SlotProfile:
    """The slots of one chunk of `unit` on all nodes of a schedule."""
    space, ask = schedule.space, schedule.space.of(unit)
    fitting: dict[Vector, _Fitting] = {}
    nodes, most = [], 0
    for node in space.lists[ask.among]:
        capacity = space.capacity[node]
        if capacity not in fitting:
            fitting[capacity] = _Fitting(capacity, ask)
        chunks = fitting[capacity].__getitem__
        times, free = schedule.steps[node]
        counts = [*map(chunks, free[: bisect_left(times, schedule.until)])]
        most += chunks(capacity)
        if any(counts):
            nodes.append(_joined(times, counts))
    rest = schedule.rest and _shared(schedule.rest, schedule.until, most, space)
    return SlotProfile(now, nodes, unit.processors, schedule.until, rest)


class _Fitting(dict[Vector, int]):
    """Chunks that fit, by the free amounts on nodes of one capacity, which are most often the same."""

    def __init__(self, capacity: Vector, ask: Ask) -> None:
        self._capacity, self._ask = capacity, ask

    def __missing__(self, free: Vector) -> int:
        self[free] = count = chunks_on(free, self._capacity, self._ask)
        return count


def _shared(rest: Profile, until: float, most: int, space: Space) -> Profile:
    """Units from a time on: of the `most` on empty nodes, the share of all processors that is free."""
    total = max(1, sum(capacity[PROCESSORS] for capacity in space.capacity))
    steps = [(until, rest.free_at(until)), *(step for step in rest.steps() if step[0] > until)]
    units = [(time, min(most, most * max(0, free) // total)) for time, free in steps]
    return Profile.of_steps(
        [step for before, step in pairwise([(until, -1), *units]) if step[1] != before[1]]
    )


def _layers(steps: Iterable[tuple[float, int]]) -> Iterator[tuple[float, float, int]]:
    """`(begin, end, units)` of a node: at each instant, as many units as are free, that stay longest."""
    for begin, end, units, shared in rectangles(steps):
        yield begin, end, units - shared


def _joined(times: list[float], counts: list[int]) -> Steps:
    """Adjacent steps with the same count as one step."""
    changed = [*map(ne, counts, (None, *counts))]
    return tuple(compress(times, changed)), tuple(compress(counts, changed))


def _least(steps: Steps, start: float, end: float) -> int:
    times, counts = steps
    first = max(0, bisect_right(times, start) - 1)
    return counts[first] and min(counts[first : bisect_left(times, end, first + 1)])
