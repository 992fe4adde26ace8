"""The leases that a worker holds: which start now, and which go back to the daemon. Pure.

Leases start in the order of their arrival. A lease that does not fit lets later ones pass, but only a
limited number of times, so that it does not starve. Of a bag with `max-running`, some leases wait behind
others: each starts in the place of one that has ended.
A slot goes on with a bag whose Python process waits there for calls, until another bag's turn comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.resources import Room, TaskSize
from adaptor.worker.binding import Binding
from adaptor.worker.timers import NEVER

LOOKAHEAD = 100  # leases at the head of the queue among which the worker looks for one that fits
TURN = 2.0
"""Seconds for which calls of other bags may pass one whose start would end a process of theirs: to start one
and have it import its modules takes up to a second of a processor."""
PAUSE = 0.2
"""Seconds for which a process that waits for calls is not ended for the sake of another bag: its program gets
the last result, and its next call arrives."""


class HeldTask(msgspec.Struct, frozen=True):
    """A lease with what its bag says."""

    lease: Lease
    bag: BagContext
    gpus: tuple[int, ...] = ()
    """GPUs that it holds while it runs, by their place among those of the worker."""
    cpus: tuple[int, ...] = ()
    """Numbers of the processors to which it is bound while it runs; empty: it is not bound."""

    @property
    def key(self) -> AttemptKey:
        return self.lease.key

    @property
    def cwd(self) -> str:
        """The folder in which it starts."""
        return self.lease.cwd or self.bag.cwd

    @property
    def task(self) -> TaskSize:
        return self.lease.task or self.bag.task

    def limit(self, limits: Mapping[int, float]) -> float | None:
        """Seconds after which it is ended; None: there is no limit. `limits`: by bag."""
        return limits.get(self.key.bag) if self.lease.timeout is None else self.lease.timeout


class Slots:
    """The processors, memory and GPUs of a node, the tasks that run there, and the queue behind them."""

    def __init__(
        self,
        processors: int,
        memory: int,
        deadline: float,
        *,
        gpus: int = 0,
        gpu_type: str = "",
        binding: Binding | None = None,
    ) -> None:
        """`binding`: hands out the processors; None: tasks are not bound."""
        self.whole = Room(processors, memory, (1.0,) * gpus, gpu_type)
        self.processors = processors
        self.memory = memory
        self.deadline = deadline  # monotonic seconds at which the pilot ends
        self.queue: dict[AttemptKey, HeldTask] = {}
        """All that have not started, in the order of their arrival."""
        self._ready: dict[AttemptKey, HeldTask] = {}  # tasks that may start as soon as there is room
        self._behind: dict[int, dict[AttemptKey, HeldTask]] = {}
        """The others by bag: they wait for attempts of it to end."""
        self._passed_since: dict[int, float] = {}
        """Time since which others have passed the leases of a bag for the sake of their processes, by bag."""
        self._held_back = 0  # processors of ready leases that were put off at the last look
        self.again_at = NEVER  # monotonic seconds at which the first of them may start
        self._active: Counter[int] = Counter()  # by bag: the attempts that run or are ready
        self.running: dict[AttemptKey, HeldTask] = {}
        self._idle_processors = processors
        self._idle_memory = memory
        self._queued_processors = 0
        self._queued_memory = 0
        self._binding = binding
        self._gpu_shares: list[dict[AttemptKey, float]] = [{} for _ in range(gpus)]
        """Part of each GPU that each running task holds."""
        self._passed = 0  # number of leases that have passed the head of the queue

    @property
    def free_processors(self) -> int:
        """Processors that no lease held here will take, except those that were put off."""
        return max(0, self._idle_processors - max(0, self._queued_processors - self._held_back))

    @property
    def free_memory(self) -> int:
        return max(0, self._idle_memory - self._queued_memory)

    @property
    def free_gpus(self) -> tuple[float, ...]:
        """The part of each GPU that no lease held here will take."""
        if not self._gpu_shares:
            return ()
        room = self._idle_gpus()
        for held in self._ready.values():
            if held.task.nodes > 1:
                return (0.0,) * len(room.gpus)
            if held.task.gpus and room.places(held.task):
                room = room.without(held.task)
        return room.gpus

    def can_ever_hold(self, held: HeldTask) -> bool:
        return self.whole.holds(held.task)

    def add(self, held: HeldTask) -> None:
        """Queue a lease that `can_ever_hold` accepts and that is not held yet."""
        self.queue[held.key] = held
        if self._may_start(held):
            self._make_ready(held)
        else:
            self._behind.setdefault(held.key.bag, {})[held.key] = held

    def take(self, key: AttemptKey) -> HeldTask:
        """Remove a queued lease. Raises KeyError."""
        held = self.queue.pop(key)
        if key in self._ready:
            self._unready(held)
            self._leave(key.bag)
        else:
            self._forget_behind(key)
            self._admit(key.bag)
        return held

    def _may_start(self, held: HeldTask) -> bool:
        among = held.lease.among
        return not among or self._active[held.key.bag] < among

    def _make_ready(self, held: HeldTask) -> None:
        self._ready[held.key] = held
        self._active[held.key.bag] += 1
        processors, memory = self._part(held.task)
        self._queued_processors += processors
        self._queued_memory += memory

    def _unready(self, held: HeldTask) -> None:
        if held.key == next(iter(self._ready)):
            self._passed = 0
        del self._ready[held.key]
        processors, memory = self._part(held.task)
        self._queued_processors -= processors
        self._queued_memory -= memory

    def _forget_behind(self, key: AttemptKey) -> None:
        del self._behind[key.bag][key]
        if not self._behind[key.bag]:
            del self._behind[key.bag]

    def _leave(self, bag: int) -> None:
        """An attempt of a bag neither runs nor is ready any more: others may take its place."""
        self._active[bag] -= 1
        self._admit(bag)
        if not self._active[bag]:
            del self._active[bag]

    def _admit(self, bag: int) -> None:
        """Make waiting leases of a bag ready, in their order, up to the first that must still wait.

        Called if an attempt leaves, or a waiting lease is taken out, which may have been the first.
        """
        while behind := self._behind.get(bag):
            held = next(iter(behind.values()))
            if not self._may_start(held):
                break
            self._forget_behind(held.key)
            self._make_ready(held)

    def start_next(
        self,
        now: float,
        displaces: Callable[[HeldTask], float | None] = lambda _held: None,
        warm_on: Callable[[HeldTask], Iterable[Sequence[int]]] = lambda _held: (),
    ) -> HeldTask | None:
        """Move the next lease that fits and has enough time from the queue to the running ones.

        Until its turn comes, a lease lets those pass whose start ends no process of another bag, and then the
        slot stays free for `PAUSE`: the next call of that other bag may be on its way.

        Args:
            displaces: since when (monotonic seconds) the process waits for calls that the start of a lease
                would end; None: it would end none.
            warm_on: the processors of each process that waits for calls of a lease's bag.
        """
        self._held_back, self.again_at = 0, NEVER
        if self._idle_processors <= 0:
            return None
        reach = 1 if self._passed >= self.processors else LOOKAHEAD
        unfit, put_off = 0, []
        for held in islice(self._ready.values(), reach):
            if not (self._fits(held.task) and self.in_time(held, now)):
                unfit += 1
                continue
            since, bag = displaces(held), held.key.bag
            if since is None or now - self._passed_since.get(bag, now) >= TURN:
                return self._start(held, unfit, warm_on(held))
            self._passed_since.setdefault(bag, now)
            put_off.append((since + PAUSE, unfit, held))
        for due, passed, held in put_off:
            if due <= now:
                return self._start(held, passed, ())
        self._held_back = sum(self._part(held.task)[0] for *_, held in put_off)
        self.again_at = min((due for due, *_ in put_off), default=NEVER)
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
        held = msgspec.structs.replace(self.running[key], gpus=(), cpus=())
        self.end(key)
        rest = self.clear()
        for each in (held, *rest):
            self.add(each)

    def end(self, key: AttemptKey) -> None:
        """A running attempt has ended: free what it used."""
        held = self.running.pop(key)
        self._leave(key.bag)
        processors, memory = self._part(held.task)
        self._idle_processors += processors
        self._idle_memory += memory
        for place in held.gpus:
            del self._gpu_shares[place][key]
        if self._binding is not None and held.cpus:
            self._binding.give_back(held.cpus)

    def _fits(self, task: TaskSize) -> bool:
        processors, memory = self._part(task)
        if processors > self._idle_processors or memory > self._idle_memory:
            return False
        return not task.gpus or self._idle_gpus().places(task) is not None

    def _part(self, task: TaskSize) -> tuple[int, int]:
        """Processors and bytes that a task takes here: all, if it takes several nodes."""
        if task.nodes > 1:
            return self.processors, self.memory
        return task.processors, task.memory or 0

    def _idle_gpus(self) -> Room:
        """Idle GPUs, without processors and memory."""
        shares = tuple(1.0 - sum(shares.values()) for shares in self._gpu_shares)
        return Room(gpus=shares, gpu_type=self.whole.gpu_type)

    def _start(self, held: HeldTask, unfit: int, wanted: Iterable[Sequence[int]]) -> HeldTask:
        """Start an attempt. `unfit`: the earlier leases that it passes because they do not fit."""
        self._passed += bool(unfit)
        self._passed_since.pop(held.key.bag, None)
        del self.queue[held.key]
        self._unready(held)
        processors, memory = self._part(held.task)
        self._idle_processors -= processors
        self._idle_memory -= memory
        if self._gpu_shares:
            task = held.task
            places = list(range(len(self._gpu_shares)))
            if task.nodes == 1:
                places = (self._idle_gpus().places(task) or []) if task.gpus else []
            for place in places:
                self._gpu_shares[place][held.key] = task.gpu_share
            held = msgspec.structs.replace(held, gpus=tuple(places))
        if self._binding is not None and held.bag.bind and held.task.nodes == 1:
            held = msgspec.structs.replace(held, cpus=self._binding.take(processors, wanted))
        self.running[held.key] = held
        return held
