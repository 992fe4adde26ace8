"""The Python processes of this node's calls: kept warm from one call to the next of their bag."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Mapping

from adaptor.worker.calls.warm import Answer, Place, WarmProcess
from adaptor.worker.execution import Child
from adaptor.worker.output import TaskFiles
from adaptor.worker.slots import HeldTask
from adaptor.worker.start_errors import CannotStartError

IDLE = 30.0
"""Seconds without a call after which a process ends."""
_GRACE = 5.0
"""Seconds from the end of its connection to SIGKILL."""


class WarmProcesses:
    """Times are monotonic seconds, passed in."""

    def __init__(self, most: int) -> None:
        """`most`: attempts that run and processes that wait for calls, together."""
        self._most = most
        self._idle: dict[int, tuple[float, WarmProcess]] = {}
        """By process id, the longest idle one first: since when."""
        self._busy: dict[int, WarmProcess] = {}
        self._ending: dict[int, float] = {}
        """Those that have been told to end: when they are killed."""
        self._ended_bags: set[int] = set()
        """With processes that are busy still."""
        self._poll = select.epoll()

    @property
    def fd(self) -> int:
        """A descriptor that is readable while an answer is."""
        return self._poll.fileno()

    def __contains__(self, pid: int) -> bool:
        return pid in self._idle or pid in self._busy or pid in self._ending

    def start(self, held: HeldTask, environment: Mapping[str, str], files: TaskFiles) -> Child:
        """Have a call run; returns the process that runs it. Raises CannotStartError or ShortageError."""
        interpreter = held.bag.interpreter
        if interpreter is None:
            raise CannotStartError("it is a call, and its bag names no Python interpreter")
        process = self._take(Place(held.key.bag, held.cpus, held.gpus))
        if process is None:
            self.make_room(time.monotonic(), len(self._busy) + 1)
            process = WarmProcess.start(held, interpreter, environment, files)
            self._poll.register(process.connection, select.EPOLLIN)
        self._busy[process.child.pid] = process
        try:
            process.send(held, environment, files)
        except CannotStartError:
            del self._busy[process.child.pid]
            self._end(process, 0.0)
            raise
        return process.child

    def end(self, pid: int, now: float) -> None:
        """The call of a process has ended, and it shall run no other."""
        self._end(self._busy.pop(pid), now + _GRACE)

    def answers(self) -> list[tuple[int, Answer]]:
        """The answers that have arrived, by process id."""
        found: list[tuple[int, Answer]] = []
        for pid in self._ready():
            process = self._busy.get(pid)
            answer = process.answer() if process is not None else None
            if answer is not None:
                found.append((pid, answer))
            elif process is None or process.cut_off:
                self._give_up(pid)
        return found

    def rest(self, pid: int, now: float) -> None:
        """The call of a process has ended; it waits for the next one."""
        process = self._busy.pop(pid)
        if process.place.bag in self._ended_bags:
            self._end(process, now)
            self.end_bag(process.place.bag, now)
        else:
            self._idle[pid] = (now, process)

    def gone(self, pid: int) -> None:
        """A process has ended."""
        _, idle = self._idle.pop(pid, (0.0, None))
        process = self._busy.pop(pid, idle)
        if process is not None:
            self._close(process)
        self._ending.pop(pid, None)

    def make_room(self, now: float, running: int) -> None:
        """Before a start: end idle processes that would be too many beside those that run then."""
        while self._idle and running + len(self._idle) > self._most:
            self._end_idle(next(iter(self._idle)), now)

    def end_bag(self, bag: int, now: float) -> None:
        """The bag has ended."""
        for pid, (_, process) in list(self._idle.items()):
            if process.place.bag == bag:
                self._end_idle(pid, now)
        self._ended_bags.discard(bag)
        if any(process.place.bag == bag for process in self._busy.values()):
            self._ended_bags.add(bag)

    def next_due(self) -> float:
        oldest = min((since + IDLE for since, _ in self._idle.values()), default=float("inf"))
        return min([oldest, *self._ending.values()])

    def tend(self, now: float) -> None:
        """End those that have been idle for long, and kill those that have not ended in time."""
        for pid, (since, _) in list(self._idle.items()):
            if since + IDLE <= now:
                self._end_idle(pid, now)
        for pid, kill_at in self._ending.items():
            if kill_at <= now:
                _kill(pid)
                self._ending[pid] = float("inf")

    def leads(self, pid: int) -> bool:
        """Whether a process is in the session of one that waits for calls: what an earlier call left."""
        try:
            return os.getsid(pid) in self
        except ProcessLookupError:
            return False

    def _ready(self) -> list[int]:
        """The processes that have something to say, or whose connection has ended."""
        if not self._busy and not self._idle:
            return []
        ready = {handle for handle, _ in self._poll.poll(0)}
        if not ready:
            return []
        all_processes = [*self._busy.values(), *(process for _, process in self._idle.values())]
        return [each.child.pid for each in all_processes if each.connection.fileno() in ready]

    def _give_up(self, pid: int) -> None:
        """A process has ended, or has closed its connection: then it cannot answer any more."""
        if pid in self._idle:
            self._end(self._idle.pop(pid)[1], 0.0)
        else:
            _kill(pid)
            self._close(self._busy[pid])

    def _take(self, place: Place) -> WarmProcess | None:
        for pid, (_, process) in self._idle.items():
            if process.place == place:
                del self._idle[pid]
                return process
        return None

    def _end_idle(self, pid: int, now: float) -> None:
        self._end(self._idle.pop(pid)[1], now + _GRACE)

    def _end(self, process: WarmProcess, kill_at: float) -> None:
        self._ending[process.child.pid] = kill_at
        self._close(process)

    def _close(self, process: WarmProcess) -> None:
        if process.connection.fileno() >= 0:
            self._poll.unregister(process.connection)
            process.end()


def _kill(pid: int) -> None:
    """It is not reaped yet, so no other process has its id."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
