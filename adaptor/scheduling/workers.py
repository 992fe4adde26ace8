"""The workers that the broker knows, and the leases that each of them holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from adaptor.protocol.messages import AttemptKey


class HeldLease(msgspec.Struct):
    """One lease that a worker holds."""

    leased: float
    """Epoch seconds."""
    cpus: int
    started: float | None = None
    """Start of the task as reported, epoch seconds; None while the task waits in the worker."""
    abort_sent: bool = False
    give_back_sent: bool = False


class Worker:
    """One agent on one node of one pilot."""

    def __init__(
        self,
        id: str,
        *,
        pilot: int,
        site: str,
        node: str,
        processors: int,
        memory: int,
        deadline: float,
        seen: float,
    ) -> None:
        self.id = id
        self.pilot = pilot
        self.site = site
        self.node = node
        self.processors = processors
        self.memory = memory
        self.deadline = deadline
        """The end of its pilot, epoch seconds."""
        self.seen = seen
        """Epoch seconds of its last message."""
        self.free_processors = 0
        self.free_memory = 0
        self.queued = 0
        self.held: dict[AttemptKey, HeldLease] = {}
        self.too_long = float("inf")
        """The shortest need (seconds) of a task that the worker returned for lack of time."""
        self.awaited = False
        """True from a restart of the daemon until the worker says Hello: only the journal knows it."""

    @property
    def unstarted(self) -> list[AttemptKey]:
        return [key for key, held in self.held.items() if held.started is None]

    @property
    def idle(self) -> bool:
        return not self.held and not self.awaited

    def time_left(self, now: float) -> float:
        return self.deadline - now

    def take(self, key: AttemptKey, cpus: int, memory: int, now: float) -> None:
        """Hold one more lease."""
        self.held[key] = HeldLease(leased=now, cpus=cpus)
        if self.free_processors >= cpus and self.free_memory >= memory:
            self.free_processors -= cpus
            self.free_memory -= memory
        else:
            self.queued += 1


def by_pilot(workers: Iterable[Worker]) -> dict[int, list[Worker]]:
    """The workers of each pilot that has any."""
    found: dict[int, list[Worker]] = {}
    for worker in workers:
        found.setdefault(worker.pilot, []).append(worker)
    return found


class WorkerTable(dict[str, Worker]):
    """The workers by id. What they have together is kept, because it is asked for with every report."""

    def __init__(self) -> None:
        super().__init__()
        self._processors: Counter[str] = Counter()

    def processors(self, site: str) -> int:
        """Of all workers at a site."""
        return self._processors[site]

    def __setitem__(self, id: str, worker: Worker) -> None:
        if id in self:
            del self[id]
        super().__setitem__(id, worker)
        self._processors[worker.site] += worker.processors

    def __delitem__(self, id: str) -> None:
        worker = self[id]
        super().__delitem__(id)
        self._processors[worker.site] -= worker.processors
