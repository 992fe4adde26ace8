"""The attempts that run on this node: starts, ends and reaps them, and kills what they leave running."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Iterable

from adaptor.processes.environment import variables_of
from adaptor.processes.trees import child_pids, send, send_to_descendants, trees_of
from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.worker.environment import NodeEnvironment, of_task
from adaptor.worker.execution import Child, execute
from adaptor.worker.memory import INTERVAL, MemoryMeter
from adaptor.worker.openings import Opening, Openings
from adaptor.worker.slots import HeldTask
from adaptor.worker.start_errors import CannotStartError, ShortageError


class Running:
    """One attempt whose process was started."""

    def __init__(self, held: HeldTask, child: Child) -> None:
        self.held = held
        self.child = child
        self.started = time.time()
        self.began = time.monotonic()
        self.ending: Ending | None = None
        """Why the worker ends it, if it does."""
        self.kill_at = float("inf")
        """Monotonic seconds."""


class Runner:
    """All running attempts. `now` is monotonic seconds throughout."""

    def __init__(self, environment: NodeEnvironment) -> None:
        self._meter = MemoryMeter()
        self._environment = environment
        self._shared: dict[int, dict[str, str]] = {}
        """By bag: the environment that its tasks have in common here."""
        self._by_pid: dict[int, Running] = {}
        self._by_key: dict[AttemptKey, Running] = {}
        self._openings = Openings()
        self._unattributed = False
        """Whether some orphans could not be attributed to a task; `chores` looks again."""

    def __len__(self) -> int:
        return len(self._by_pid)

    def loads(self, now: float) -> list[tuple[AttemptKey, float]]:
        """The running attempts with their wall seconds."""
        return [(key, now - running.began) for key, running in self._by_key.items()]

    def forget_bag(self, bag: int) -> None:
        """The daemon has sent its context again."""
        self._shared.pop(bag, None)

    @property
    def opening(self) -> list[AttemptKey]:
        """Attempts that are not started yet because a file system has not answered."""
        return self._openings.keys()

    def prepare(self, queue: Iterable[HeldTask]) -> None:
        """These attempts will start soon, in this order: begin to open their files."""
        self._openings.prepare(queue)

    def discard(self, held: HeldTask) -> None:
        """An attempt will not start after all; it may have been prepared."""
        self._openings.discard(held)

    def start(self, held: HeldTask, deadline: float) -> bool:
        """Start an attempt that will be ended at `deadline` (epoch seconds).

        Returns whether it runs; False: a file system does not answer, `take_over` will return it.
        Raises CannotStartError or ShortageError.
        """
        shared = self._shared.get(held.bag.bag)
        if shared is None:
            shared = self._shared[held.bag.bag] = self._environment.of_bag(held.bag)
        opening = self._openings.open(held, of_task(shared, held.bag, held.lease, deadline))
        return opening is not None and self.start_opened(opening)

    def take_over(self, now: float) -> list[Opening]:
        """Those of `opening` that a file system has answered, or has not for too long; for `start_opened`."""
        return self._openings.take_over(now)

    def start_opened(self, opening: Opening) -> bool:
        """Returns True. Raises CannotStartError or ShortageError."""
        held = opening.held
        try:
            files = opening.files()
            try:
                running = Running(held, execute(held, opening.environment, files))
            finally:
                files.close()
        except (CannotStartError, ShortageError):
            self._openings.ended(held, spare=False)
            raise
        self._by_pid[running.child.pid] = self._by_key[held.key] = running
        return True

    def give_up(self, key: AttemptKey) -> bool:
        """Forget one of `opening`. Returns False if it is none of these."""
        return self._openings.forget(key)

    def next_look(self) -> float:
        """When `take_over` is due."""
        return self._openings.next_look()

    def reap(self) -> list[Result]:
        """Wait for all children that have ended; end what ended attempts have left behind."""
        ended: list[HeldTask] = []
        results: list[Result] = []
        reaped = False
        while (pid := ended_child()) is not None:
            reaped = True
            running = self._by_pid.pop(pid, None)
            if running is not None:
                # While its leader is a zombie, no other process group can have this id.
                signal_group(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            if running is not None:
                ended.append(running.held)
                results.append(self._result(running, status, usage))
        alone = self.sweep() if reaped else True
        for held in ended:
            self._openings.ended(held, spare=alone)
        return results

    def tidy(self) -> None:
        """Remove the empty files of ended attempts that no start could use."""
        self._openings.tidy()

    def sweep(self) -> bool:
        """Kill the orphans that belong to no running attempt; SIGCHLD reports their ends.

        Returns whether there were no orphans at all, so that no process of an ended attempt lives.
        """
        self._unattributed = False
        orphans = [pid for pid in child_pids() if pid not in self._by_pid]
        for pid in orphans:
            if self._owner(pid) is None:
                # If its environment is unreadable, it may belong to a running attempt: spare it.
                if self._by_pid and attempt_of(pid) is None:
                    self._unattributed = True
                else:
                    signal_process(pid, signal.SIGKILL)
        return not orphans

    def end(self, keys: Iterable[AttemptKey], ending: Ending, kill_at: float) -> None:
        """Send the whole trees of these attempts SIGTERM, and SIGKILL from `kill_at` on, as far as they run.

        One look at all processes does for all of them.
        """
        found = {running.child.pid: running for key in keys if (running := self._by_key.get(key))}
        if not found:
            return
        for running in found.values():
            self._mark(running, ending, kill_at)
        for tree in trees_of(found).values():
            for process in tree:
                send(process, signal.SIGTERM)
        for pid in child_pids():
            if pid not in self._by_pid and self._owner(pid) in found.values():
                signal_process(pid, signal.SIGTERM)

    def end_all(self, ending: Ending, kill_at: float) -> None:
        """The same for all attempts."""
        for running in self._by_pid.values():
            self._mark(running, ending, kill_at)
        if self._by_pid:
            send_to_descendants(signal.SIGTERM)

    def next_kill(self) -> float:
        return min((running.kill_at for running in self._by_pid.values()), default=float("inf"))

    def kill_due(self, now: float) -> None:
        for pid, running in self._by_pid.items():
            if running.kill_at <= now:
                signal_group(pid, signal.SIGKILL)
                running.kill_at = float("inf")

    def next_chores(self) -> float:
        """When `chores` is due; attempts that end sooner cost no sampling."""
        oldest = next(iter(self._by_pid.values()), None)
        if oldest is None:
            return float("inf")
        return max(self._meter.next_sample, oldest.began + INTERVAL)

    def chores(self) -> None:
        """Sample the memory of running attempts, and look again at orphans without a known task."""
        self._meter.sample(set(self._by_pid))
        if self._unattributed:
            self.sweep()

    @staticmethod
    def _mark(running: Running, ending: Ending, kill_at: float) -> None:
        running.ending = running.ending or ending
        running.kill_at = min(running.kill_at, kill_at)

    def _owner(self, pid: int) -> Running | None:
        """The running attempt that an orphan belongs to, by its session, else by its environment."""
        with contextlib.suppress(ProcessLookupError):
            of_session = self._by_pid.get(os.getsid(pid))
            if of_session is not None:
                return of_session
        key = attempt_of(pid)
        return self._by_key.get(key) if key else None

    def _result(self, running: Running, status: int, usage: resource.struct_rusage) -> Result:
        pid = running.child.pid
        running.child.reaped()
        del self._by_key[running.held.key]
        signalled = os.WIFSIGNALED(status)
        return Result(
            running.held.key,
            running.ending or (Ending.SIGNALLED if signalled else Ending.EXITED),
            started=running.started,
            wall=time.monotonic() - running.began,
            cpu=usage.ru_utime + usage.ru_stime,
            peak_memory=self._meter.peak(pid, usage.ru_maxrss),
            exit_code=None if signalled else os.WEXITSTATUS(status),
            signal=os.WTERMSIG(status) if signalled else None,
        )


def ended_child() -> int | None:
    """A child that has ended and that nobody has waited for yet."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended else None


def attempt_of(pid: int) -> AttemptKey | None:
    """The attempt that a process was started for, by its environment."""
    variables = variables_of(pid)
    try:
        names = ("ADAPTOR_BAG_ID", "ADAPTOR_TASK_ID", "ADAPTOR_ATTEMPT")
        return AttemptKey(*(int(variables[name]) for name in names))
    except (KeyError, ValueError):
        return None


def signal_process(pid: int, number: int) -> None:
    """Signal a child that nobody has waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
