"""The Python processes of this node's calls: kept warm from one call to the next of their bag."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from adaptor.worker.execution import Child
from adaptor.worker.jobs.as_job import NUMBERS
from adaptor.worker.output import CannotStartError, TaskFiles
from adaptor.worker.slots import HeldTask
from adaptor.worker.timers import NEVER, Timers

if TYPE_CHECKING:  # only workers of calls need it
    from adaptor.worker.calls.warm import CallAnswer, WarmProcess

IDLE = 30.0  # seconds without a call after which a process ends
PER_PROCESSOR = 4
"""Attempts that run and processes that wait for calls, together, for each processor: bags that take turns at
a slot keep a process each, as far as the memory goes."""
_SPARE_PART = 1 / 8
"""The part of the memory that no attempt here needs by its size which processes beyond the slots may hold."""
_GRACE = 5.0  # seconds from the end of its connection to SIGKILL


class WarmProcesses:
    """Times are monotonic seconds, passed in."""

    def __init__(
        self,
        timers: Timers,
        processors: int,
        spare: Callable[[], int],
        release: Callable[[HeldTask, tuple[str, str]], None],
    ) -> None:
        """
        Args:
            spare: returns the bytes of memory that no attempt here needs by its size.
            release: gets the names of output files that a process does not need any more, with its last call.
        """
        self._tend = timers.new(self._end_due)
        self._processors = processors
        self._spare = spare
        self._release = release
        self._idle: dict[int, tuple[float, WarmProcess]] = {}
        """Begin of idleness and process by process id, the longest idle one first."""
        self._busy: dict[int, WarmProcess] = {}
        self._ending: dict[int, float] = {}  # monotonic seconds at which processes that must end are killed
        self._ended_bags: set[int] = set()  # with processes that are busy still
        self._silent: set[int] = set()  # bags whose last call to end has written nothing
        self._poll = select.epoll()
        self._by_handle: dict[int, int] = {}
        """Process ids by the descriptors of the connections that are open."""

    @property
    def fd(self) -> int:
        """A descriptor that is readable while an answer is."""
        return self._poll.fileno()

    def __contains__(self, pid: int) -> bool:
        return pid in self._idle or pid in self._busy or pid in self._ending

    def start(self, held: HeldTask, environment: Mapping[str, str], files: TaskFiles, running: int) -> Child:
        """Have a call run; returns the process that runs it. Raises CannotStartError or ShortageError.

        `running`: the other attempts that run.
        """
        interpreter = held.bag.interpreter
        if interpreter is None:
            raise CannotStartError("it is a call, and its bag names no Python interpreter")
        process = self._take(held)
        if process is None:
            from adaptor.worker.calls.warm import WarmProcess

            self.make_room(time.monotonic(), running + 1, held.gpus)
            process = WarmProcess.start(held, interpreter, environment, files)
            self._poll.register(process.connection, select.EPOLLIN)
            self._by_handle[process.connection.fileno()] = process.child.pid
        self._release_files(process)
        own = {
            name: value
            for name, value in environment.items()
            if name.startswith("ADAPTOR_") or name in NUMBERS or name in (held.lease.environment or {})
        }
        return self._send(process, held, own, files)

    def go_on(self, held: HeldTask, own: Mapping[str, str]) -> Child | None:
        """Have a call run that needs no files; None: no process has kept those of an earlier one.

        `own`: the variables of this call.
        """
        if held.lease.nodes:  # they are in a file of each call's own
            return None
        process = self._take(held, with_files=True)
        if process is None:
            return None
        try:
            return self._send(process, held, own)
        except CannotStartError:  # it has ended meanwhile, and another one takes the call
            return None

    def names(self, pid: int) -> tuple[str, str] | None:
        """Names of the output files that a busy process has kept, if these have names."""
        kept = self._busy[pid].kept
        return None if kept is None else kept.names

    def are_silent(self, bag: int) -> bool:
        """True if the calls of a bag write nothing, as far as is known, so that they need no new files."""
        return bag in self._silent

    def wrote(self, pid: int) -> None:
        """The call of a process has ended, and the files are its own."""
        process = self._busy[pid]
        process.kept = None
        self._silent.discard(process.place.bag)

    def was_silent(self, pid: int, *, named: bool) -> None:
        """The call of a process has ended, and has written nothing. `named`: its files have got its names."""
        process = self._busy[pid]
        self._silent.add(process.place.bag)
        if named:
            self._release_files(process)

    def end(self, pid: int, now: float) -> None:
        """The call of a process has ended, and it shall run no other."""
        self._end(self._busy.pop(pid), now + _GRACE)

    def answers(self) -> list[tuple[int, CallAnswer]]:
        """The answers that have arrived, by process id."""
        found: list[tuple[int, CallAnswer]] = []
        ready = self._poll.poll(0) if self._busy or self._idle else []
        for pid in [self._by_handle[handle] for handle, _ in ready]:
            process = self._busy.get(pid)
            answer = process.answer() if process is not None else None
            if process is not None and answer is not None:
                process.memory = answer.peak
                found.append((pid, answer))
            elif process is None or process.cut_off:
                # A process has ended, or has closed its connection: then it cannot answer any more.
                if pid in self._idle:
                    self._end(self._idle.pop(pid)[1], 0.0)
                else:
                    _kill(pid)
                    self._close(self._busy[pid])
        return found

    def rest(self, pid: int, now: float) -> None:
        """The call of a process has ended; it waits for the next one."""
        process = self._busy.pop(pid)
        if process.place.bag in self._ended_bags:
            self._end(process, now)
            self.end_bag(process.place.bag, now)
        else:
            self._idle[pid] = (now, process)
            self._tend.advance(now + IDLE)

    def gone(self, pid: int) -> None:
        """Forget a process that has ended."""
        _, idle = self._idle.pop(pid, (0.0, None))
        process = self._busy.pop(pid, idle)
        if process is not None:
            self._close(process)
        self._ending.pop(pid, None)

    def make_room(self, now: float, running: int, gpus: Iterable[int] = ()) -> None:
        """Before a start, end idle processes that would be too many with the attempts that run then, and
        those that hold memory of its GPUs."""
        taken = set(gpus)
        for pid, (_, process) in list(self._idle.items()):
            if not taken.isdisjoint(process.place.gpus):
                self._end_idle(pid, now)
        while self._idle and not self._fits(running, list(self._idle)):
            self._end_idle(next(iter(self._idle)), now)

    def processors_of(self, bag: int) -> list[tuple[int, ...]]:
        """The processors of each process that waits for calls of a bag."""
        return [process.place.cpus for _, process in self._idle.values() if process.place.bag == bag]

    def would_displace(self, held: HeldTask, running: int) -> float | None:
        """Monotonic seconds since which the process waits that the start of a call would end.

        None: the start would end none, or there is one of its own bag. `running`: attempts that run.
        """
        if not self._idle or held.lease.call is None:
            return None
        if any(process.place.bag == held.key.bag for _, process in self._idle.values()):
            return None
        on_gpus = [since for since, process in self._idle.values() if held.task.gpus and process.place.gpus]
        if on_gpus:
            return on_gpus[0]
        if self._fits(running + 1, list(self._idle)):
            return None
        return next(iter(self._idle.values()))[0]

    def _fits(self, running: int, idle: list[int]) -> bool:
        """True if these idle processes, the longest idle one first, may stay in addition to these
        attempts."""
        beyond = running + len(idle) - self._processors
        if beyond <= 0:
            return True
        if running + len(idle) > PER_PROCESSOR * self._processors:
            return False
        held = sum(self._idle[pid][1].memory for pid in idle[:beyond])
        return held <= _SPARE_PART * self._spare()

    def end_bag(self, bag: int, now: float) -> None:
        for pid, (_, process) in list(self._idle.items()):
            if process.place.bag == bag:
                self._end_idle(pid, now)
        self._silent.discard(bag)
        self._ended_bags.discard(bag)
        if any(process.place.bag == bag for process in self._busy.values()):
            self._ended_bags.add(bag)

    def end_all(self) -> None:
        """End all processes: no more calls come, and none runs."""
        for process in [*self._busy.values(), *(process for _, process in self._idle.values())]:
            self._close(process)

    def _end_due(self, now: float) -> None:
        """End those that have been idle for long, and kill those that have not ended in time."""
        for pid, (since, _) in list(self._idle.items()):
            if since + IDLE <= now:
                self._end_idle(pid, now)
        for pid, kill_at in self._ending.items():
            if kill_at <= now:
                _kill(pid)
                self._ending[pid] = NEVER
        dues = (since + IDLE for since, _ in self._idle.values())
        self._tend.advance(min([*dues, *self._ending.values()], default=NEVER))

    def leads(self, pid: int) -> bool:
        """True if a process is in the session of one that waits for calls: an earlier call left it."""
        try:
            return os.getsid(pid) in self
        except ProcessLookupError:
            return False

    def _send(
        self, process: WarmProcess, held: HeldTask, own: Mapping[str, str], files: TaskFiles | None = None
    ) -> Child:
        """Send a call to a process. Raises CannotStartError."""
        self._busy[process.child.pid] = process
        try:
            process.send(held, own, files)
        except CannotStartError:
            del self._busy[process.child.pid]
            self._end(process, 0.0)
            raise
        return process.child

    def _take(self, held: HeldTask, *, with_files: bool = False) -> WarmProcess | None:
        """An idle process for a call; `with_files`: that has files for it."""
        if not self._idle:
            return None
        from adaptor.worker.calls.warm import CallPlace

        place = CallPlace.of(held)
        for pid, (_, process) in self._idle.items():
            has_files = process.kept is not None and process.kept.cwd == held.cwd
            if process.place == place and (has_files or not with_files):
                del self._idle[pid]
                return process
        return None

    def _end_idle(self, pid: int, now: float) -> None:
        self._end(self._idle.pop(pid)[1], now + _GRACE)

    def _end(self, process: WarmProcess, kill_at: float) -> None:
        self._ending[process.child.pid] = kill_at
        self._tend.advance(kill_at)
        self._close(process)

    def _close(self, process: WarmProcess) -> None:
        if process.connection.fileno() >= 0:
            self._poll.unregister(process.connection)
            del self._by_handle[process.connection.fileno()]
            process.end()
        self._release_files(process)

    def _release_files(self, process: WarmProcess) -> None:
        kept, process.kept = process.kept, None
        if process.held is not None and kept is not None and kept.names is not None:
            self._release(process.held, kept.names)


def _kill(pid: int) -> None:
    """Kill a process that is not reaped yet, so no other process has its id."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
