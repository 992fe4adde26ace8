"""The workers that the broker knows, and the leases that each of them holds."""

from __future__ import annotations

from collections import Counter

import msgspec

from adaptor.protocol.messages import AttemptKey, Report
from adaptor.resources import Room, TaskSize


class HeldLease(msgspec.Struct):
    """One lease that a worker holds."""

    leased: float
    """Epoch seconds."""
    cpus: int
    """Processors that it takes."""
    started: float | None = None
    """Start of the task as reported, epoch seconds; None while the task waits in the worker."""
    at_once: bool = False
    """Whether it was given to free processors; if it ends its worker at once, its start is never reported."""
    suspect: bool = False
    """Whether its task is suspected to take its workers down; such tasks run apart from others."""
    abort_sent: bool = False
    give_back_sent: bool = False
    group: tuple[str, ...] = ()
    """Workers that hold a task on several nodes, the one that runs its command first."""
    line: int | None = None
    """The class of its size in its bag (see `lines`); None: it is not counted."""
    takes_part: bool = False
    """Whether another worker of the group runs the command, and this one is only kept for it."""
    among: int = 0
    """Number of running attempts of its bag at the worker below which it starts; 0: no limit that is
    known."""
    in_reserve: bool = False
    """Whether, after a restart, earlier leases take all processors of its pilot: it hardly runs yet."""

    @property
    def behind(self) -> bool:
        """True if it waits for the place of one of its bag that ends."""
        return bool(self.among) and self.started is None and not self.at_once


class HeldLeases(dict[AttemptKey, HeldLease]):
    """The leases of one worker. It counts them by bag, for `at_once` is asked with every report."""

    def __init__(self) -> None:
        super().__init__()
        self._by_among: dict[int, Counter[int]] = {}

    def at_once(self, bag: int, extra: int | None = None) -> int:
        """The most attempts of a bag that may run here at the same time, whatever ends meanwhile.

        A lease starts only while fewer attempts than its `among` run: no more run than the largest of these.

        Args:
            extra: the `among` of one more lease; None: without one.
        """
        counts = self._by_among.get(bag)
        held = 0 if counts is None else counts.total()
        limits = [*(counts or ()), *(() if extra is None else (extra,))]
        held += extra is not None
        return held if 0 in limits else min(held, max(limits, default=0))

    def running_seconds(self, now: float) -> float:
        """Processor-seconds of the attempts that run here, since their starts."""
        started = [(held.cpus, held.started) for held in self.values() if held.started is not None]
        return sum(cpus * max(0.0, now - start) for cpus, start in started)

    def __setitem__(self, key: AttemptKey, held: HeldLease) -> None:
        if key in self:
            del self[key]
        super().__setitem__(key, held)
        if not held.takes_part:
            self._by_among.setdefault(key.bag, Counter())[held.among] += 1

    def __delitem__(self, key: AttemptKey) -> None:
        held = self[key]
        super().__delitem__(key)
        if not held.takes_part:
            counts = self._by_among[key.bag]
            counts[held.among] -= 1
            if not counts[held.among]:
                del counts[held.among]
            if not counts:
                del self._by_among[key.bag]


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
        gpus: int = 0,
        gpu_type: str = "",
    ) -> None:
        self.id = id
        self.pilot = pilot
        self.site = site
        self.node = node
        self.whole = Room(processors, memory, (1.0,) * gpus, gpu_type)  # resources while nothing runs there
        self.free = Room()
        self.deadline = deadline  # the end of its pilot, epoch seconds
        self.seen = seen  # epoch seconds of its last message
        self.queued = 0
        self.held = HeldLeases()
        self.time_limits: dict[int, float] = {}
        """Limit in seconds that was sent last, by bag with a limit that is a part of a mean runtime."""
        self.too_long = float("inf")
        """The shortest need (seconds) of a task that the worker returned for lack of time."""
        self.awaited = False
        """True from a restart of the daemon until the worker says Hello: only the journal knows it."""

    @property
    def processors(self) -> int:
        return self.whole.processors

    @property
    def unstarted(self) -> list[AttemptKey]:
        return [key for key, held in self.held.items() if held.started is None]

    @property
    def running(self) -> list[AttemptKey]:
        """Attempts that run, or run as soon as their leases arrive."""
        return [key for key, held in self.held.items() if held.started is not None or held.at_once]

    @property
    def runs_suspects(self) -> bool:
        """True if it gets no other tasks for now."""
        return any(held.suspect for held in self.held.values())

    @property
    def open_processors(self) -> int:
        """Processors on which tasks may run: next to a suspect, none."""
        return sum(held.cpus for held in self.held.values()) if self.runs_suspects else self.processors

    def time_left(self, now: float) -> float:
        """Seconds for which tasks may still run."""
        return self.deadline - now

    def can_finish(self, needs: float, now: float) -> bool:
        """Whether a task that needs `needs` seconds may start now (De Rose §4.3.1)."""
        return needs <= self.time_left(now) and needs < self.too_long

    def report(self, report: Report) -> None:
        """Take in what it says is free."""
        gpus = (min(1.0, max(0.0, free)) for free in report.free_gpus[: len(self.whole.gpus)])
        self.free = Room(report.free_processors, report.free_memory, tuple(gpus), self.whole.gpu_type)

    def take(
        self,
        key: AttemptKey,
        task: TaskSize,
        now: float,
        *,
        suspect: bool = False,
        among: int = 0,
        behind: bool = False,
    ) -> None:
        """Hold one more lease. `behind`: it starts in the place of one of its bag that has ended."""
        fits = not behind and self.free.holds(task)
        self.held[key] = HeldLease(
            leased=now, cpus=task.processors, at_once=fits, suspect=suspect, among=among
        )
        if fits:
            self.free = self.free.without(task)
        else:
            self.queued += 1

    def take_part(self, key: AttemptKey, group: tuple[str, ...], now: float, *, suspect: bool) -> None:
        """Hold a task on several nodes, of which it gives all it has."""
        self.held[key] = HeldLease(
            leased=now,
            cpus=self.processors,
            at_once=True,
            suspect=suspect,
            group=group,
            takes_part=self.id != group[0],
        )
        self.free = Room()


class WorkerTable(dict[str, Worker]):
    """The workers by id. What they have together is kept, because it is asked for with every report."""

    def __init__(self) -> None:
        super().__init__()
        self._processors: Counter[str] = Counter()
        self.by_pilot: dict[int, dict[str, Worker]] = {}

    def of_pilot(self, pilot: int) -> list[Worker]:
        return list(self.by_pilot.get(pilot, {}).values())

    def processors(self, site: str) -> int:
        """Processors of all workers at a site."""
        return self._processors[site]

    def __setitem__(self, id: str, worker: Worker) -> None:
        if id in self:
            del self[id]
        super().__setitem__(id, worker)
        self._processors[worker.site] += worker.processors
        self.by_pilot.setdefault(worker.pilot, {})[id] = worker

    def __delitem__(self, id: str) -> None:
        worker = self[id]
        super().__delitem__(id)
        self._processors[worker.site] -= worker.processors
        del self.by_pilot[worker.pilot][id]
        if not self.by_pilot[worker.pilot]:
            del self.by_pilot[worker.pilot]
