"""Free amounts on each node over time. The readable form; a test compares `kernel` with it. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import sub

from adaptor.crafting.nodes.space import Ask, Space, Vector, chunks_on, taken_by


class Timeline:
    """Free amounts on one node: step i reaches from `times[i]` to `times[i + 1]`; the last never ends."""

    __slots__ = ("free", "times")

    def __init__(self, start: float, capacity: Vector) -> None:
        self.times = [start]
        self.free: list[Vector] = [capacity]

    @classmethod
    def of(cls, times: Sequence[float], free: Sequence[Vector]) -> Timeline:
        """A copy of the steps of a node."""
        line = cls(times[0], free[0])
        line.times, line.free = list(times), list(free)
        return line

    def least(self, start: float, end: float) -> Vector:
        """Least that is free at any instant of [start, end), by dimension."""
        first = max(0, bisect_right(self.times, start) - 1)
        last = bisect_left(self.times, end, first + 1)
        steps = self.free[first:last]
        return steps[0] if len(steps) == 1 else tuple(map(min, zip(*steps, strict=True)))

    def hold(self, start: float, end: float, held: Vector) -> None:
        """Take what is held during [start, end); what is free may fall below 0 (see `clamp`)."""
        start = max(start, self.times[0])
        if start >= end:
            return
        first = self._split(start)
        last = len(self.times) if math.isinf(end) else self._split(end)
        for step in range(first, last):
            self.free[step] = tuple(map(sub, self.free[step], held))

    def clamp(self) -> None:
        """Set free amounts below 0 to 0, for holds that exceed the node (the scheduler knows better)."""
        self.free = [tuple(max(0, count) for count in step) for step in self.free]

    def _split(self, time: float) -> int:
        step = bisect_left(self.times, time)
        if step == len(self.times) or self.times[step] != time:
            self.times.insert(step, time)
            self.free.insert(step, self.free[step - 1])
        return step


class Timelines:
    """Free amounts of all nodes of a space over time."""

    def __init__(self, start: float, space: Space) -> None:
        self._start = start
        self._space = space
        self._nodes = [Timeline(start, vector) for vector in space.capacity]
        self._reached: dict[tuple[Ask, float], float] = {}
        self.latest: list[tuple[int, Vector]] = []  # by node, what the last job took that was planned

    def hold(self, holds: Iterable[tuple[int, float, float, Vector]]) -> None:
        """`(node, begin, end, what is held)`; where they exceed a node, nothing of it is free."""
        touched = set()
        for node, begin, end, held in holds:
            self._nodes[node].hold(begin, end, held)
            touched.add(node)
        for node in touched:
            self._nodes[node].clamp()

    def place(self, jobs: Iterable[tuple[Ask, float, float]]) -> None:
        """Hold nodes for jobs `(ask, start, end)` whose nodes are not known: as many chunks as fit."""
        for ask, start, end in jobs:
            self._take(ask, start, end)

    def backfill(self, jobs: Sequence[tuple[Ask, float]]) -> list[float]:
        """Plan jobs `(ask, tr)` in this order, each at its earliest start; `math.inf`: never."""
        return [self._plan(ask, tr) for ask, tr in jobs]

    def steps(self) -> list[tuple[list[float], list[Vector]]]:
        """Steps of each node: `(times, free amounts from then on)`."""
        return [(node.times, node.free) for node in self._nodes]

    def _plan(self, ask: Ask, tr: float) -> float:
        """A job never starts before an earlier one that asks for the same: holds only grow."""
        earliest = self._reached.get((ask, tr), self._start)
        changes = {time for node in self._nodes for time in node.times if time > earliest}
        start = next(
            (time for time in (earliest, *sorted(changes)) if self._fits(ask, time, time + tr)), math.inf
        )
        self._reached[ask, tr] = start
        if start < math.inf:
            self._take(ask, start, start + tr)
        return start

    def _fits(self, ask: Ask, start: float, end: float) -> bool:
        left = ask.chunks
        for node in self._space.lists[ask.among]:
            left -= chunks_on(self._nodes[node].least(start, end), self._space.capacity[node], ask)
            if left <= 0:
                return True
        return left <= 0

    def _take(self, ask: Ask, start: float, end: float) -> None:
        self.latest = [*take(self._nodes, self._space, ask, start, end, self._space.lists[ask.among])]


def take(
    nodes: Sequence[Timeline], space: Space, ask: Ask, start: float, end: float, among: Iterable[int]
) -> Iterator[tuple[int, Vector]]:
    """Hold the first of these nodes that have room, and yield each with what is taken of it."""
    left = ask.chunks
    for node in among:
        if left <= 0:
            return
        least = nodes[node].least(start, end)
        chunks = min(left, chunks_on(least, space.capacity[node], ask))
        if chunks > 0:
            taken = taken_by(chunks, least, space.capacity[node], ask)
            nodes[node].hold(start, end, taken)
            left -= chunks
            yield node, taken
