"""One worker on a virtual clock: the leases that it holds, and what it says to the broker. Pure."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable

import msgspec

from adaptor.protocol.messages import (
    AttemptKey,
    BagContext,
    Ending,
    Goodbye,
    Hello,
    Lease,
    Leaving,
    Report,
    Result,
)
from adaptor.worker.slots import HeldTask, Slots


class Attempt(msgspec.Struct, frozen=True):
    """Course of one attempt of a task."""

    seconds: float
    exit_code: int = 0


_SECOND_0 = sys.float_info.min
"""Report of a start at second 0 of the clock, because 0 means that an attempt was not started."""

Behaviour = Callable[[AttemptKey, str], Attempt]  # what an attempt of a bag's task does at a site (by name)


class Started(msgspec.Struct, frozen=True):
    """An attempt that runs. Seconds of the virtual clock."""

    key: AttemptKey
    at: float
    ends: float
    exit_code: int
    place: int
    """The lowest number that no other running attempt of the worker had."""


class PilotPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Place of a worker. Seconds of the virtual clock."""

    pilot: int
    site: str
    processors: int
    deadline: float
    """End of the pilot."""
    node: str = "node"
    memory: int = 1 << 62
    """Bytes."""


class SimulatedWorker:
    """Holds leases in the slots of a real worker (`adaptor.worker.slots`), and ends its tasks `last` seconds
    before its pilot ends."""

    def __init__(self, id: str, number: int, pilot: PilotPlace, last: float) -> None:
        self.id = id
        self.number = number  # workers are numbered in the order in which they start
        self.pilot = pilot
        self.leave_at = self._latest = pilot.deadline - last
        self.running: dict[AttemptKey, Started] = {}
        self.welcomed = False  # whether the daemon has answered its Hello
        self.idle_since: float | None = None
        self._slots = Slots(pilot.processors, pilot.memory, pilot.deadline)
        self._unreported: list[AttemptKey] = []
        self._free: list[int] = []
        self._places = 0

    @property
    def idle(self) -> bool:
        return not self.running and not self._slots.queue

    @property
    def free(self) -> bool:
        """Whether it has processors that no lease will take."""
        return self._slots.free_processors > 0

    @property
    def has_started(self) -> bool:
        """Whether attempts started that were not reported yet."""
        return bool(self._unreported)

    def pay_until(self, unpaid: float) -> None:
        """These seconds at the end of the pilot are not paid for."""
        self.leave_at = self._latest - unpaid

    def late_at(self) -> float:
        """The last second at which every lease that waits in the worker may still be started."""
        needs = (held.lease.needs for held in self._slots.queue.values())
        return self.pilot.deadline - max(needs, default=-math.inf)

    def hello(self) -> Hello:
        self._unreported.clear()
        return Hello(
            pilot=self.pilot.pilot,
            node=self.pilot.node,
            pid=self.number,
            version="simulated",
            processors=self.pilot.processors,
            memory=self.pilot.memory,
            deadline=self.pilot.deadline,
            holding=[*self._slots.queue, *self.running],
            started=list(self.running),
        )

    def report(self, results: list[Result]) -> Report:
        started, self._unreported = self._unreported, []
        return Report(
            results=results,
            started=started,
            free_processors=self._slots.free_processors,
            free_memory=self._slots.free_memory,
            queued=len(self._slots.queue),
        )

    def accept(self, lease: Lease, bag: BagContext) -> None:
        self._slots.add(HeldTask(Lease(lease.key, "", lease.needs, task=lease.task), bag))

    def start(self, now: float, behaviour: Callable[[AttemptKey], Attempt]) -> list[Started]:
        """Start what fits and has the time; returns what was started."""
        found = []
        while held := self._slots.start_next(now):
            does = behaviour(held.key)
            place = heapq.heappop(self._free) if self._free else self._new_place()
            started = Started(held.key, now, now + does.seconds, does.exit_code, place)
            self.running[held.key] = started
            self._unreported.append(held.key)
            found.append(started)
        return found

    def finish(self, key: AttemptKey) -> Result:
        """An attempt has run to its end."""
        done = self._stop(key)
        wall, started = done.ends - done.at, done.at or _SECOND_0
        return Result(key, Ending.EXITED, started=started, wall=wall, cpu=wall, exit_code=done.exit_code)

    def abort(self, key: AttemptKey, now: float) -> list[Result]:
        """Follow an order of the broker: end an attempt, or hand it back if it has not started."""
        if key not in self.running:
            return self.give_back(key)
        return [self._cut(key, Ending.ABORTED, now)]

    def give_back(self, key: AttemptKey) -> list[Result]:
        """Hand a lease back unless it has started."""
        if key not in self._slots.queue:
            return []
        self._slots.take(key)
        return [Result(key, Ending.RETURNED)]

    def return_late(self, now: float) -> list[Result]:
        """Hand back what waits here and can no longer finish in time."""
        return [Result(held.key, Ending.RETURNED) for held in self._slots.too_late(now)]

    def leave(self, why: Leaving, now: float) -> Goodbye:
        """Hand back what has not started and end what runs."""
        returned = [Result(held.key, Ending.RETURNED) for held in self._slots.clear()]
        by_place = sorted(self.running.values(), key=lambda each: each.place)
        ended = [self._cut(started.key, Ending.ENDED, now) for started in by_place]
        return Goodbye(why=why, results=[*returned, *ended])

    def _cut(self, key: AttemptKey, ending: Ending, now: float) -> Result:
        cut = self._stop(key)
        ran = now - cut.at
        return Result(key, ending, started=cut.at or _SECOND_0, wall=ran, cpu=ran)

    def _stop(self, key: AttemptKey) -> Started:
        self._slots.end(key)
        stopped = self.running.pop(key)
        heapq.heappush(self._free, stopped.place)
        return stopped

    def _new_place(self) -> int:
        self._places += 1
        return self._places - 1
