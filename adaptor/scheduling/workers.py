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
    at_once: bool = False
    """Whether it was given to free processors; if it ends its worker at once, its start is never reported."""
    suspect: bool = False
    """Whether its task is suspected to take its workers down; such tasks run apart from others."""
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
    def running(self) -> list[AttemptKey]:
        """Those that run, or run as soon as their leases arrive."""
        return [key for key, held in self.held.items() if held.started is not None or held.at_once]

    @property
    def idle(self) -> bool:
        return not self.held and not self.awaited

    @property
    def runs_suspects(self) -> bool:
        """True if it gets no other tasks for now."""
        return any(held.suspect for held in self.held.values())

    @property
    def open_processors(self) -> int:
        """Processors on which tasks may run: beside a suspect, no others."""
        return sum(held.cpus for held in self.held.values()) if self.runs_suspects else self.processors

    def time_left(self, now: float) -> float:
        return self.deadline - now

    def take(self, key: AttemptKey, cpus: int, memory: int, now: float, *, suspect: bool = False) -> None:
        """Hold one more lease."""
        fits = self.free_processors >= cpus and self.free_memory >= memory
        self.held[key] = HeldLease(leased=now, cpus=cpus, at_once=fits, suspect=suspect)
        if fits:
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
