"""Nodes for many jobs whose starts are known, in the order of these. Pure."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from adaptor.crafting.nodes.space import PROCESSORS, Ask
from adaptor.crafting.nodes.timelines import Timeline, Timelines, take


class TimelinesByStart(Timelines):
    """Placing for long queues, in which looking at each node for each job would take minutes.

    Only nodes with enough processors free at the start of a job are looked at for it.
    """

    def place(self, jobs: Iterable[tuple[Ask, float, float]]) -> None:
        now = _Now(self._nodes)
        among = [frozenset(nodes) for nodes in self._space.lists]
        for ask, start, end in sorted(jobs, key=itemgetter(1)):
            now.move(start)
            there = (node for node in now.with_free(ask.each[PROCESSORS]) if node in among[ask.among])
            self.latest = [*take(self._nodes, self._space, ask, start, end, there)]
            for node, _ in self.latest:
                now.held(node, start, end)


class _Now:
    """The nodes by the processors that they have free at an instant, which only moves forward."""

    def __init__(self, nodes: Sequence[Timeline]) -> None:
        self._nodes = nodes
        self._free = [-1] * len(nodes)
        self._by_free: defaultdict[int, list[int]] = defaultdict(list)
        """Nodes in order, by their free processors."""
        self._changes = [(time, number) for number, node in enumerate(nodes) for time in node.times]
        heapq.heapify(self._changes)

    def move(self, time: float) -> None:
        while self._changes and self._changes[0][0] <= time:
            self._look(heapq.heappop(self._changes)[1], time)

    def held(self, node: int, start: float, end: float) -> None:
        """Note that more of a node is held from now, `start`, on."""
        self._look(node, start)
        heapq.heappush(self._changes, (end, node))

    def with_free(self, processors: int) -> Iterator[int]:
        """The nodes with this number of processors free, in order."""
        return heapq.merge(*(nodes for free, nodes in self._by_free.items() if free >= processors))

    def _look(self, node: int, time: float) -> None:
        line, before = self._nodes[node], self._free[node]
        free = line.free[max(0, bisect_right(line.times, time) - 1)][PROCESSORS]
        if free != before:
            if before >= 0:
                there = self._by_free[before]
                del there[bisect_left(there, node)]
            insort(self._by_free[free], node)
            self._free[node] = free
