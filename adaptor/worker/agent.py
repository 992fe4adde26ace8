"""The worker's loop: waits for messages, signals and time, and has each handled."""

from __future__ import annotations

import contextlib
import math
import os
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.processes.devices import devices_of
from adaptor.processes.trees import end_descendants
from adaptor.protocol.messages import (
    LAST_SECONDS,
    Goodbye,
    Hello,
    Leaving,
    Orders,
    Result,
    Welcome,
    decode_to_worker,
)
from adaptor.shortfalls import gave_less
from adaptor.worker import lifecycle
from adaptor.worker.binding import Binding
from adaptor.worker.environment import NodeEnvironment, parse_env0
from adaptor.worker.given import bounds_of, given, machine_memory
from adaptor.worker.jobs.as_job import TaskJobs
from adaptor.worker.link import Link
from adaptor.worker.parts import NodeFiles
from adaptor.worker.runner import Runner
from adaptor.worker.scripts import Scripts
from adaptor.worker.settings import Settings
from adaptor.worker.slots import Slots
from adaptor.worker.staged.node_bundles import NodeBundles
from adaptor.worker.tasks import WorkerTasks
from adaptor.worker.timers import NEVER, Timers

UNREACHABLE = 75  # exit code of a worker that never reached its daemon (EX_TEMPFAIL of sysexits.h)
_UNTIL_WELCOME = Welcome(heartbeat=5.0, idle_timeout=60.0, grace_time=0.0, patience=60.0)
_SILENT_HEARTBEATS = 3  # heartbeats without an answer after which the worker connects again
_SOFT = 0.6  # the part of the grace time between SIGTERM and SIGKILL; the rest is for the report
_FAREWELL = 2.0  # seconds for the daemon to acknowledge the last results
_IN_LINE = 4  # times the time-out for reaching the daemon, for a worker whose connection it has taken
_LONGEST_WAIT = 60.0  # seconds from one turn to the next, at most


class Agent:
    """One worker. Times are monotonic seconds unless noted."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._log = lifecycle.Log(settings.directory / f"worker-{settings.file_node}.log")
        self._wakeup = lifecycle.Wakeup()
        identity = f"{settings.pilot}-{settings.node}-{os.getpid()}"
        self._deadline = time.monotonic() + settings.deadline - time.time()
        """Time at which the pilot ends, however the time of day is set meanwhile."""
        self._unpaid = 0.0  # seconds before that at which it ends unless more time is paid for
        devices = devices_of(environment)
        self._given = given(settings.asked, bounds_of(environment), machine_memory())
        slots = Slots(
            self._given.processors,
            self._given.memory,
            self._deadline,
            gpus=len(devices.ids),
            gpu_type=settings.gpu_type,
            binding=Binding(self._given.processors),
        )
        files = NodeFiles(settings.directory)
        node = NodeEnvironment(environment, self._read_before())
        scripts = Scripts(settings.scripts, settings.node, environment)
        jobs = TaskJobs(settings.scripts, settings.node, environment, settings.access.parent)
        self._timers = Timers()
        processors = self._given.processors
        bundles = NodeBundles(
            settings.archives, settings.scripts, environment, settings.node, self._given.memory, self._log.say
        )
        runner = Runner(
            node, devices, files, scripts, jobs, bundles, processors, self._timers, lambda: slots.free_memory
        )
        self._news = select.epoll()
        """Readable with every signal, and when an attempt has answered or may start."""
        for handle in (self._wakeup.fd, *runner.fds):
            self._news.register(handle, select.EPOLLIN)
        self._link = Link(settings.access, identity, self._news.fileno(), self._log.say)
        self._tasks = WorkerTasks(slots, runner, files, self._timers)
        self._devices = devices
        self._terms = _UNTIL_WELCOME
        self._reporter = lifecycle.Reporter(self._tasks, self._terms.heartbeat)
        self._idle_timer = lifecycle.IdleTimer()
        self._heard: float | None = None  # time of the daemon's last message
        self._greeted: float | None = None  # time of the last Hello that awaits its Welcome
        self._leaving: Leaving | None = None
        self._started = 0.0
        self._left_at = 0.0  # monotonic seconds of the decision to leave
        self._unreachable = False  # whether it has tried long enough to reach its daemon for the first time
        self._leave_timer = self._timers.new(self._leave_in_time)
        self._idle = self._timers.new(self._leave_idle)
        self._reach = self._timers.new(self._give_up_reaching)
        self._connecting = self._timers.new(self._connect)
        self._silence = self._timers.new(self._reconnect)
        self._reporting = self._timers.new(lambda _now: None)  # it only ends the wait: `_report` is the last

    def run(self) -> int:
        """Work until there is a reason to leave. Returns the exit code."""
        settings = self._settings
        self._log.say(
            f"worker {__version__} of pilot {settings.pilot} on {settings.node}: {self._given.processors} "
            f"processors, {self._deadline - time.monotonic():.0f} s until the pilot ends"
            + (f", GPUs {' '.join(self._devices.ids)}" if self._devices.ids else "")
        )
        if self._given.shortfalls:
            self._log.say(gave_less(settings.node, self._given.shortfalls))
        try:
            self._leave_timer.set(0.0)
            self._connecting.set(0.0)
            self._started = time.monotonic()
            self._reach.set(self._started + settings.reach_timeout)
            while self._leaving is None or not self._tasks.idle:
                self._turn()
                if self._unreachable:
                    return self._give_up()
            self._say_goodbye(self._leaving)
            return 0
        finally:
            end_descendants()
            self._tasks.runner.leave()
            results = self._tasks.outbox.results()
            if results:
                self._log.say(f"{len(results)} results without acknowledgement: {self._save(results)}")
            self._link.end(linger=0.5)
            self._log.say("left")

    def _turn(self) -> None:
        now = time.monotonic()
        if self._wakeup.told_to_leave:
            self._leave(Leaving.SIGNAL, f"got {self._wakeup.told_to_leave}")
        self._tasks.tend(now)
        self._tasks.ends = lifecycle.leave_at(self._deadline, self._terms.grace_time)
        self._timers.run(now)
        self._tasks.start_ready(now)
        if self._leaving is None:
            self._tasks.start(now)
        self._tasks.openings.tidy()
        if self._unreachable or (self._leaving is not None and self._tasks.idle):
            return
        if self._link.note_break(now):
            self._log.say(f"the connection to the daemon is lost: {self._link.problem}; reconnecting")
        self._link.note_progress(now)
        self._report(now)
        # Those that anything in a turn may have moved. What they call looks again.
        welcomed = self._link.welcomed
        self._idle_timer.note(now, idle=self._tasks.idle, connected=welcomed)
        self._idle.set(self._idle_timer.ends(self._terms) if self._leaving is None else NEVER)
        self._connecting.set(NEVER if welcomed else self._link.next_try)
        self._silence.set(self._silent_at() if welcomed else NEVER)
        self._reporting.set(self._reporter.next_due(now) if welcomed else NEVER)
        pause = min(self._timers.next_due() - time.monotonic(), _LONGEST_WAIT)
        for data in self._link.wait(max(0.0, pause)):
            self._handle(data)
        self._wakeup.drain()

    @property
    def _ends(self) -> float:
        """Time until which the pilot is paid for."""
        return self._deadline - self._unpaid

    def _leave_at(self) -> float:
        return lifecycle.leave_at(self._ends, self._terms.grace_time)

    def _silent_at(self) -> float:
        return (self._heard or 0.0) + _SILENT_HEARTBEATS * self._terms.heartbeat

    def _leave_in_time(self, now: float) -> None:
        if now >= self._leave_at():
            paid = "paid time" if self._unpaid else "time"
            self._leave(Leaving.TIME_UP, f"the pilot's {paid} is up")
        else:
            self._leave_timer.set(self._leave_at())

    def _leave_idle(self, now: float) -> None:
        self._idle_timer.note(now, idle=self._tasks.idle, connected=self._link.welcomed)
        if self._heard is not None and (why := self._idle_timer.reason_to_leave(now, self._terms)):
            self._leave(why, "no work" if why is Leaving.IDLE else "no work, and no answer from the daemon")

    def _give_up_reaching(self, now: float) -> None:
        """A worker whose connection was taken waits on: many may be in line before it."""
        if self._leaving is not None or self._heard is not None:
            return
        limit = self._started + _IN_LINE * self._settings.reach_timeout
        if self._link.in_line and now < limit:
            self._reach.set(min(limit, now + self._settings.reach_timeout))
        else:
            self._unreachable = True

    def _report(self, now: float) -> None:
        """Report after all else in a turn: the output of reported tasks has been settled."""
        if self._link.welcomed and now >= self._reporter.next_due(now):
            self._link.send(self._reporter.compose(now, leaving=self._leaving is not None))

    def _reconnect(self, now: float) -> None:
        if self._link.welcomed and now >= self._silent_at():
            self._log.say("the daemon is silent: reconnecting")
            self._link.lost(now)

    def _connect(self, now: float) -> None:
        if self._link.welcomed or now < self._link.next_try:
            return
        if self._link.reach(now):
            self._say_hello()
        else:
            self._log.say(self._link.problem)

    def _leave(self, why: Leaving, words: str) -> None:
        """Return queued leases and end running tasks; the loop goes on until they have ended."""
        if self._leaving is not None:
            return
        self._leaving, self._left_at = why, time.monotonic()
        self._log.say(f"leaving: {words}; {len(self._tasks.running)} tasks running")
        now = time.monotonic()
        grace = lifecycle.grace_left(now, self._ends, self._terms.grace_time)
        self._tasks.end_all(now, now + _SOFT * grace)

    def _say_hello(self) -> None:
        settings = self._settings
        self._greeted = time.monotonic()
        self._tasks.started.clear()
        self._link.send(
            Hello(
                pilot=settings.pilot,
                node=settings.node,
                pid=os.getpid(),
                version=__version__,
                processors=self._given.processors,
                memory=self._given.memory,
                shortfalls=self._given.shortfalls,
                gpus=len(self._devices.ids),
                gpu_type=settings.gpu_type,
                deadline=time.time() + self._deadline - time.monotonic(),
                holding=self._tasks.holding,
                started=self._tasks.running,
                unacknowledged=self._tasks.outbox.everything(time.monotonic()),
            )
        )

    def _handle(self, data: bytes) -> None:
        try:
            message = decode_to_worker(data)
        except msgspec.DecodeError as error:
            self._leave(Leaving.TOLD, f"cannot decode message, the daemon may have another version: {error}")
            return
        self._heard = time.monotonic()
        self._tasks.outbox.acknowledge(message.acknowledged)
        if isinstance(message, Welcome):
            self._log.say(f"welcomed at {self._link.tried[-1]}")
            self._terms = message
            self._tasks.grace = min(message.grace_time, LAST_SECONDS)
            self._tasks.runner.shell = message.shell
            self._tasks.runner.bundles.folder = message.node_folder
            self._greeted = None
            self._leave_timer.set(0.0)
            self._link.heard()
            self._reporter.renew(message.heartbeat)
        else:
            self._follow(message)

    def _follow(self, orders: Orders) -> None:
        if orders.unpaid is not None:
            self._unpaid = orders.unpaid
            self._leave_timer.set(0.0)
        for ended in orders.ended_bags:
            self._tasks.forget(ended)
        for bag in orders.bags:
            self._tasks.know(bag)
        for lease in orders.leases:
            self._tasks.accept(lease)
        self._tasks.limit(orders.timeouts)
        self._tasks.abort(orders.abort, time.monotonic() + min(self._terms.grace_time, LAST_SECONDS))
        for key in orders.give_back:
            self._tasks.give_back(key)
        if orders.leave:
            self._leave(Leaving.TOLD, f"the daemon says: {orders.leave}")
        if self._leaving is not None:
            self._tasks.return_queue()
        if orders.say_hello and not self._hello_is_under_way():
            self._say_hello()

    def _hello_is_under_way(self) -> bool:
        """True if the daemon may have asked again before it got the last Hello.

        A second Hello would not name the leases that the answer to the first one brings, and the daemon
        would give them to another worker.
        """
        return self._greeted is not None and time.monotonic() - self._greeted < self._terms.heartbeat

    def _say_goodbye(self, why: Leaving) -> None:
        """Send the remaining results and wait a moment for their acknowledgement."""
        outbox = self._tasks.outbox
        said = answered = False
        now = time.monotonic()
        took = now - self._left_at
        until = now + lifecycle.grace_left(now, self._deadline, _FAREWELL)
        while self._link.welcomed and now < until and not (answered and not outbox):
            if not said or outbox.has_unsent:
                self._link.send(Goodbye(why=why, results=outbox.everything(now), took=took))
                said, answered = True, False
            for data in self._link.wait(until - now):
                self._handle(data)
                answered = True
            self._wakeup.drain()
            now = time.monotonic()

    def _give_up(self) -> int:
        settings = self._settings
        tried = ", ".join(self._link.tried) or "no address"
        silent = "it takes connections and does not answer: it may be stopped, or its machine overloaded"
        blocked = "a firewall may block it, or the daemon does not run"
        why = self._link.problem or (silent if self._link.in_line else blocked)
        waited = time.monotonic() - self._started
        seconds = f"{max(settings.reach_timeout, math.floor(waited)):g} s"
        sentence = f"{os.uname().nodename} has not reached the daemon for {seconds} at {tried}: {why}"
        self._log.say(sentence)
        print(sentence, file=sys.stderr)
        with contextlib.suppress(OSError):  # if this cannot be written, the scheduler's log has it
            lifecycle.save_unreachable(settings, sentence)
        return UNREACHABLE

    def _save(self, results: list[Result]) -> str:
        try:
            return str(lifecycle.save_results(self._settings, results))
        except OSError as error:  # the daemon counts these attempts as lost
            return f"they are lost: {self._settings.directory}: {error.strerror}"

    def _read_before(self) -> dict[str, str] | None:
        path: Path | None = self._settings.env_before
        if path is None:
            return None
        try:
            return parse_env0(path.read_bytes())
        except OSError as error:
            self._log.say(f"{path}: {error.strerror}; the prologue's variables do not reach the tasks")
            return None
