"""The leases that a worker holds: which start now, and which go back to the daemon. Pure.

Leases start in the order of their arrival. A lease that does not fit lets later ones pass, but only a
limited number of times, so that it does not starve.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from adaptor.protocol.messages import AttemptKey, BagContext, Lease

LOOKAHEAD = 100
"""Leases at the head of the queue among which the worker looks for one that fits."""


class HeldTask(msgspec.Struct, frozen=True):
    """A lease with what its bag says."""

    lease: Lease
    bag: BagContext

    @property
    def key(self) -> AttemptKey:
        return self.lease.key


class Slots:
    """The processors and the memory of a node, the tasks that run there, and the queue behind them."""

    def __init__(self, processors: int, memory: int, deadline: float) -> None:
        self.processors = processors
        self.memory = memory
        self.deadline = deadline
        """Epoch seconds at which the pilot ends."""
        self.queue: dict[AttemptKey, HeldTask] = {}
        self.running: dict[AttemptKey, HeldTask] = {}
        self._idle_processors = processors
        self._idle_memory = memory
        self._queued_processors = 0
        self._queued_memory = 0
        self._passed = 0
        """How many leases have passed the head of the queue."""

    @property
    def free_processors(self) -> int:
        """Processors that no lease held here will take."""
        return max(0, self._idle_processors - self._queued_processors)

    @property
    def free_memory(self) -> int:
        return max(0, self._idle_memory - self._queued_memory)

    def can_ever_hold(self, bag: BagContext) -> bool:
        return bag.cpus <= self.processors and (bag.memory or 0) <= self.memory

    def add(self, held: HeldTask) -> None:
        """Queue a lease that `can_ever_hold` accepts and that is not held yet."""
        self.queue[held.key] = held
        self._queued_processors += held.bag.cpus
        self._queued_memory += held.bag.memory or 0

    def take(self, key: AttemptKey) -> HeldTask:
        """Remove a queued lease. Raises KeyError."""
        if key == next(iter(self.queue), None):
            self._passed = 0
        held = self.queue.pop(key)
        self._queued_processors -= held.bag.cpus
        self._queued_memory -= held.bag.memory or 0
        return held

    def start_next(self, now: float) -> HeldTask | None:
        """Move the next lease that fits and has enough time from the queue to the running ones."""
        if self._idle_processors <= 0:
            return None
        reach = 1 if self._passed >= self.processors else LOOKAHEAD
        for place, (key, held) in enumerate(islice(self.queue.items(), reach)):
            if self._fits(held.bag) and self.in_time(held, now):
                self._passed += 1 if place > 0 else 0
                return self._start(key)
        return None

    def in_time(self, held: HeldTask, now: float) -> bool:
        return self.deadline - now >= held.lease.needs

    def too_late(self, now: float) -> list[HeldTask]:
        """Take those out of the queue that can no longer start in time."""
        late = [key for key, held in self.queue.items() if not self.in_time(held, now)]
        return [self.take(key) for key in late]

    def clear(self) -> list[HeldTask]:
        """Take everything out of the queue."""
        return [self.take(key) for key in list(self.queue)]

    def requeue(self, key: AttemptKey) -> None:
        """Put a lease whose start failed back to the head of the queue."""
        held = self.running[key]
        self.end(key)
        rest = self.clear()
        for each in (held, *rest):
            self.add(each)

    def end(self, key: AttemptKey) -> None:
        """A running attempt has ended: free what it used."""
        bag = self.running.pop(key).bag
        self._idle_processors += bag.cpus
        self._idle_memory += bag.memory or 0

    def _fits(self, bag: BagContext) -> bool:
        return bag.cpus <= self._idle_processors and (bag.memory or 0) <= self._idle_memory

    def _start(self, key: AttemptKey) -> HeldTask:
        held = self.take(key)
        self.running[key] = held
        self._idle_processors -= held.bag.cpus
        self._idle_memory -= held.bag.memory or 0
        return held
