"""The parts of a worker's loop: signals, the log, the idle timer, reports, and what it leaves on disk."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import msgspec

from adaptor.private_files import open_log, write_private
from adaptor.protocol.messages import LAST_SECONDS, AttemptKey, Leaving, Report, Result, Welcome
from adaptor.worker.settings import Settings
from adaptor.worker.tasks import WorkerTasks

GAP = 0.005  # seconds between two reports, at least
GAP_WITH_RESERVE = 0.05
"""Seconds between two reports while more leases are queued than slots, so that nothing waits for an
answer."""
AGAIN_AFTER = 3  # heartbeats after which the worker sends a result again that was not acknowledged

_TO_LEAVE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """A pipe that becomes readable with every signal; only one may exist in a process."""

    def __init__(self) -> None:
        self.told_to_leave = ""  # the name of the first signal that asked the worker to leave
        self._rang = False  # whether there was a signal since the pipe was drained
        self.fd, writer = os.pipe()
        for end in (self.fd, writer):
            os.set_blocking(end, False)
        # A full pipe wakes as well as another byte would.
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._on_child)
        for number in _TO_LEAVE:
            signal.signal(number, self._on_leave)

    def drain(self) -> None:
        """Forget the signals so far."""
        if not self._rang:
            return
        self._rang = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def _on_child(self, _number: int, _frame: FrameType | None) -> None:
        self._rang = True  # without a handler Python would write no byte into the pipe

    def _on_leave(self, number: int, _frame: FrameType | None) -> None:
        self._rang = True
        self.told_to_leave = signal.Signals(number).name


class Log:
    """The worker's log in the pilot's folder, with local time; on standard error if it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._handle = 2
        try:
            self._handle = open_log(path)
        except OSError as error:
            print(f"{path}: the log cannot be written: {error.strerror}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError):  # a full disk must not end the tasks
            os.write(self._handle, f"{stamp} [{os.getpid()}] {text}\n".encode(errors="replace"))


def leave_at(deadline: float, grace_time: float) -> float:
    """Time at which a worker ends its tasks; it then reports before the scheduler kills it at the
    deadline."""
    return deadline - min(grace_time, LAST_SECONDS)


def grace_left(now: float, deadline: float, grace_time: float) -> float:
    """Seconds for ending the tasks: the grace time, or less at the end of the pilot."""
    return max(0.0, min(grace_time, deadline - now))


class IdleTimer:
    """The time without a task, with or without the daemon. Pure; `now`: monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._connected = False

    def note(self, now: float, *, idle: bool, connected: bool) -> None:
        if not idle:
            self._since = None
        elif self._since is None or connected != self._connected:
            self._since = now
        self._connected = connected

    def ends(self, terms: Welcome) -> float:
        """Time at which the worker leaves unless it gets a task before; infinite while it has tasks."""
        if self._since is None:
            return float("inf")
        return self._since + (terms.idle_timeout if self._connected else terms.patience)

    def reason_to_leave(self, now: float, terms: Welcome) -> Leaving | None:
        if now < self.ends(terms):
            return None
        return Leaving.IDLE if self._connected else Leaving.ALONE


class Reporter:
    """Times and contents of a worker's reports: results at once where nothing waits behind them; other news
    together with what comes within a moment; else heartbeats.

    `now` is monotonic seconds throughout.
    """

    def __init__(self, tasks: WorkerTasks, heartbeat: float) -> None:
        self.heartbeat = heartbeat
        self._tasks = tasks
        self._last = float("-inf")
        self._last_load = float("-inf")
        self._reported: tuple[int, int, tuple[float, ...], int] | None = None
        """Free resources at the last report."""
        self._noticed: float | None = None  # since when there is news that is no result

    def renew(self, heartbeat: float) -> None:
        """The daemon does not know what is free: report it at once."""
        self.heartbeat = heartbeat
        self._reported = None

    def next_due(self, now: float) -> float:
        slots, results = self._tasks.slots, self._tasks.outbox.has_unsent
        if not (results or self._tasks.started or self._reported != self._free()):
            return self._last + self.heartbeat
        if results and not slots.queue:
            return now
        if self._noticed is None:
            self._noticed = now
        soonest = self._last if results or self._reported is None else self._noticed
        gap = GAP_WITH_RESERVE if len(slots.queue) > slots.processors else GAP
        return max(self._last + gap, soonest + GAP)

    def compose(self, now: float, *, leaving: bool = False) -> Report:
        """The report to send now. A worker that leaves offers nothing."""
        self._last, self._noticed = now, None
        self._reported = self._free()
        processors, memory, gpus, queued = (0, 0, (), 0) if leaving else self._reported
        started, self._tasks.started = self._tasks.started, []
        load: list[tuple[AttemptKey, float]] = []
        if now - self._last_load >= self.heartbeat:
            self._last_load = now
            load = self._tasks.loads(now)
        return Report(
            results=self._tasks.outbox.batch(now, AGAIN_AFTER * self.heartbeat),
            started=started,
            free_processors=processors,
            free_memory=memory,
            free_gpus=list(gpus),
            queued=queued,
            load=load,
            remarks=self._tasks.runner.bundles.take_remarks(),
        )

    def _free(self) -> tuple[int, int, tuple[float, ...], int]:
        """Processors, bytes of memory, parts of GPUs, and leases in the queue."""
        slots = self._tasks.slots
        return slots.free_processors, slots.free_memory, slots.free_gpus, len(slots.queue)


def save_results(settings: Settings, results: list[Result]) -> Path:
    """Write results without acknowledgement for the daemon: msgpack of `list[Result]`. Raises OSError."""
    path = settings.directory / f"unsent-{settings.file_node}-{os.getpid()}.msgpack"
    write_private(path, msgspec.msgpack.encode(results))
    return path


def save_unreachable(settings: Settings, sentence: str) -> Path:
    """Write for a person why no daemon was reached. Raises OSError."""
    path = settings.directory / f"unreachable-{settings.file_node}.txt"
    write_private(path, f"{sentence}\n".encode())
    return path
