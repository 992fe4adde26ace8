"""`timelines.Timelines` for queues of many jobs and nodes: the same on arrays, by compiled loops. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from adaptor.crafting.nodes import kernel
from adaptor.crafting.nodes.kernel import DONE, Ints, State
from adaptor.crafting.nodes.space import Ask, Space, Vector

_OPENINGS = 1 << 25  # of shapes on nodes that are remembered: 64 MB
_SPARE = 8  # steps for which a node has room from the beginning, in addition to those of its holds


class CompiledTimelines:
    """Free amounts on the nodes over time; equals `timelines.Timelines` call by call."""

    def __init__(self, start: float, space: Space) -> None:
        self._start = start
        self._space = space
        self._capacity = np.array(space.capacity, np.int64).reshape(len(space.nodes), space.dimensions)
        self._state = self._empty(_SPARE)

    def hold(self, holds: Iterable[tuple[int, float, float, Vector]]) -> None:
        rows = list(holds)
        if not rows:
            return
        nodes = np.array([row[0] for row in rows], np.int64)
        room = 2 * int(np.bincount(nodes).max()) + int(self._state.lengths.max()) + _SPARE
        self._grow(room)
        spans = np.array([row[1:3] for row in rows], np.float64)
        kernel.hold_all(self._state, nodes, spans, np.array([row[3] for row in rows], np.int64))
        self._state = self._summed(self._state)

    def place(self, jobs: Sequence[tuple[Ask, float, float]]) -> None:
        if not jobs:
            return
        eligible, each, terms = self._table([(ask, end - start) for ask, start, end in jobs])
        known = np.array([(start, end) for _, start, end in jobs], np.float64)
        self._state = self._with_rows(1)
        job = 0
        while (job := kernel.place(self._state, eligible, each, terms, known, job)) != DONE:
            self._grow(2 * self._state.times.shape[1])

    def backfill(self, jobs: Sequence[tuple[Ask, float]]) -> list[float]:
        if not jobs:
            return []
        eligible, each, terms = self._table(jobs)
        trs, starts = np.array([tr for _, tr in jobs], np.float64), np.empty(len(jobs), np.float64)
        example = np.unique(terms[:, kernel.SHAPE], return_index=True)[1]
        shapes = kernel.Shapes(example, np.full(len(example), -np.inf))
        self._state = self._with_rows(min(len(example), 1 + _OPENINGS // max(1, len(self._capacity))))
        job = 0
        while (job := kernel.backfill(self._state, eligible, each, terms, trs, starts, shapes, job)) != DONE:
            self._grow(2 * self._state.times.shape[1])
        found: list[float] = starts.tolist()
        return found

    @property
    def latest(self) -> list[tuple[int, Vector]]:
        rows: list[list[int]] = self._state.latest[: self._state.used[2]].tolist()
        return [(node, tuple(taken)) for node, *taken in rows]

    def steps(self) -> list[tuple[list[float], list[Vector]]]:
        state = self._state
        return [
            (state.times[node, :length].tolist(), list(map(tuple, state.free[node, :length].tolist())))
            for node, length in enumerate(state.lengths.tolist())
        ]

    def _empty(self, width: int) -> State:
        nodes, dimensions = self._capacity.shape
        times, free = np.zeros((nodes, width)), np.zeros((nodes, width, dimensions), np.int64)
        times[:, 0], free[:, 0] = self._start, self._capacity
        return self._summed(
            State(
                times=times,
                free=free,
                lengths=np.ones(nodes, np.int64),
                capacity=self._capacity,
                instants=np.zeros(0),
                total=np.zeros((0, 1), np.int64),
                used=np.ones(3, np.int64),
                latest=np.zeros((nodes, 1 + dimensions), np.int64),
                least=np.zeros(dimensions, np.int64),
                taken=np.zeros(dimensions, np.int64),
                heap=np.zeros(nodes),
                openings=np.zeros((0, 0), np.uint16),
                soonest=np.zeros((0, 0), np.uint16),
                owner=np.zeros(0, np.int64),
            )
        )

    def _with_rows(self, rows: int) -> State:
        """The state before any opening is known, with room for the openings of this number of shapes."""
        nodes = len(self._capacity)
        return self._state._replace(
            openings=np.zeros((rows, nodes), np.uint16),
            soonest=np.zeros((rows, -(-nodes // kernel.BLOCK)), np.uint16),
            owner=np.full(rows, -1),
        )

    def _grow(self, width: int) -> None:
        """Make room for this number of steps, and for twice as many instants."""
        old = self._state
        more, instants = max(0, width - old.times.shape[1]), (0, len(old.instants))
        self._state = old._replace(
            times=np.pad(old.times, ((0, 0), (0, more))),
            free=np.pad(old.free, ((0, 0), (0, more), (0, 0))),
            instants=np.pad(old.instants, instants),
            total=np.pad(old.total, (instants, (0, 0))),
        )

    def _summed(self, state: State) -> State:
        """The state with all instants, and room for as many again."""
        there = np.arange(state.times.shape[1]) < state.lengths[:, None]
        changes = np.diff(state.free[:, :, 0], axis=1, prepend=0)[there]
        found, place = np.unique(state.times[there], return_inverse=True)
        total = np.cumsum(np.bincount(place, changes, len(found))).astype(np.int64)
        room = 2 * len(found) + 2 * state.times.shape[1]
        instants, free = np.zeros(room), np.zeros((room, 1), np.int64)
        instants[: len(found)], free[: len(found), 0] = found, total
        return state._replace(
            instants=instants, total=free, used=np.array([len(found), state.lengths.max(initial=1), 0])
        )

    def _table(self, jobs: Sequence[tuple[Ask, float]]) -> tuple[Ints, Ints, Ints]:
        """The lists of nodes one after another, and by job the vector of a chunk and its terms."""
        lists = self._space.lists
        begins = np.cumsum([0, *map(len, lists)]).tolist()
        shapes: dict[tuple[Ask, float], int] = {}
        most: dict[Ask, int] = {}
        terms = []
        for ask, tr in jobs:
            if ask not in most:
                most[ask] = self._most_chunks(ask)
            shape = shapes.setdefault((ask, tr), len(shapes))
            places = begins[ask.among], begins[ask.among + 1]
            fewest = max(1, -(-ask.chunks // most[ask]))
            terms.append((ask.chunks, ask.any_gpus, ask.scatter, ask.whole, *places, shape, fewest))
        each = np.array([ask.each for ask, _ in jobs], np.int64)
        return np.array([node for some in lists for node in some], np.int64), each, np.array(terms, np.int64)

    def _most_chunks(self, ask: Ask) -> int:
        """Most chunks of such an ask that any node holds; at least 1."""
        if ask.scatter:
            return 1
        among = self._capacity[self._space.lists[ask.among]]
        bounds = [among[:, place] // each for place, each in enumerate(ask.each) if each]
        return int(np.min(bounds, axis=0).max(initial=1)) if bounds else 1
