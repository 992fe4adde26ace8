"""Managers of workers with a bag on the simulated cluster: allocations that pull the tasks.

They are modelled by what their documentation says, of HyperQueue 0.27 (automatic allocation) and Parsl 2026
(strategy `simple`); neither program is run.
"""

from __future__ import annotations

import heapq
from collections import deque

import msgspec

from adaptor_experiments.peers.by_hand import ByHand, Site, Waiting
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.kernels import Array
from adaptor_simulation.what_if import EVER


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by which a manager asks for allocations. Times in seconds."""

    name: str
    limit: int
    """Walltime of an allocation."""
    idle: int
    """An allocation without a task ends after this time."""
    queued: int
    """Allocations that wait at a time, at most."""
    most: int
    """Allocations that wait or run, at most."""
    request: float | None
    """This multiple of the longest task must be left for a task; None: any starts, and again if it is cut."""
    width: int = 8
    """Processors of an allocation: a node."""

    def run(self, cluster: Cluster, runtimes: Array, site: Site) -> ByHand | None:
        """A bag that comes now; None: its longest task fits in no allocation."""
        need = int(runtimes.max() * (self.request or 1))
        limit = min(self.limit, site.longest)
        if need + site.start > limit:
            return None
        pool = msgspec.structs.replace(self, width=site.whole(self.width))
        return _PoolRun(
            pool, cluster, runtimes.tolist(), limit, need if self.request else 0, site.start
        ).play()


class _Allocation(msgspec.Struct):
    ready: int
    """Time at which its workers take tasks."""
    end: int
    """Time at which its walltime is over."""
    free: int
    idle_since: int
    running: dict[int, int] = {}
    """Ends of its tasks."""


class _PoolRun:
    def __init__(
        self, pool: Pool, cluster: Cluster, tasks: list[int], limit: int, need: int, begin: int
    ) -> None:
        self._pool, self._cluster, self._tasks = pool, cluster, tasks
        self._limit, self._need, self._start = limit, need, begin
        self._waiting, self._left = deque(range(len(tasks))), len(tasks)
        self._queued = Waiting(cluster)
        self._running: dict[int, _Allocation] = {}
        self._events: list[tuple[int, int]] = []  # times at which to look at an allocation
        self._begin, self._held, self._jobs = cluster.now, 0, 0

    def play(self) -> ByHand:
        while self._left:
            while self._events and self._events[0][0] <= self._cluster.now:
                self._look(heapq.heappop(self._events)[1])
            self._hand_out()
            self._ask()
            self._note_starts()
            self._hand_out()
            if self._left:
                self._cluster.advance_to_change(self._events[0][0] if self._events else EVER)
        self._queued.cancel()
        last = self._cluster.now
        for number in [*self._running]:
            self._end(number)
        return ByHand(turnaround=last - self._begin, jobs=self._jobs, held=self._held)

    def _note_starts(self) -> None:
        for number, start in self._queued.started():
            ready, end = start + self._start, start + self._limit
            self._running[number] = _Allocation(ready, end, self._pool.width, ready)
            for at in {ready, ready + self._pool.idle, end}:
                heapq.heappush(self._events, (at, number))

    def _look(self, number: int) -> None:
        """Tasks that have ended are done; one whose time is over, or that was idle for too long, ends."""
        allocation, now = self._running.get(number), self._cluster.now
        if allocation is None:
            return
        for task in [task for task, end in allocation.running.items() if end <= now]:
            del allocation.running[task]
            allocation.free += 1
            allocation.idle_since = now
            self._left -= 1
        idle = not (allocation.running or (self._waiting and self._fits(allocation)))
        if now >= allocation.end or (idle and now >= allocation.idle_since + self._pool.idle):
            self._waiting.extend(allocation.running)
            self._end(number)
        elif idle:
            heapq.heappush(self._events, (allocation.idle_since + self._pool.idle, number))

    def _end(self, number: int) -> None:
        allocation = self._running.pop(number)
        self._held += self._pool.width * (self._cluster.now - allocation.end + self._limit)
        self._cluster.cancel(number)

    def _fits(self, allocation: _Allocation) -> bool:
        return allocation.ready <= self._cluster.now and self._cluster.now + self._need < allocation.end

    def _hand_out(self) -> None:
        now = self._cluster.now
        for number, allocation in self._running.items():
            while self._waiting and allocation.free and self._fits(allocation):
                task = self._waiting.popleft()
                allocation.free -= 1
                allocation.running[task] = now + self._tasks[task]
                if now + self._tasks[task] <= allocation.end:
                    heapq.heappush(self._events, (now + self._tasks[task], number))

    def _ask(self) -> None:
        """Ask for as many allocations as the waiting tasks fill."""
        pool, queued = self._pool, self._queued
        while (
            len(self._waiting) > pool.width * len(queued)
            and len(queued) < pool.queued
            and len(queued) + len(self._running) < pool.most
        ):
            queued.submit(pool.width, self._limit)
            self._jobs += 1


_HOUR = 3600
_UNBOUNDED = 1 << 40
POOLS = (
    Pool(name="hyperqueue-1h", limit=_HOUR, idle=300, queued=4, most=_UNBOUNDED, request=1.2),
    Pool(name="hyperqueue-6h", limit=6 * _HOUR, idle=300, queued=4, most=_UNBOUNDED, request=1.2),
    Pool(name="parsl-1h", limit=_HOUR, idle=120, queued=10, most=10, request=None),
    Pool(name="parsl-12h", limit=12 * _HOUR, idle=120, queued=10, most=10, request=None),
)
