"""The attempts that run on this node: start, end, reap, and clear away what they leave behind."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

from adaptor.processes import descendants as processes
from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.worker.environment import NodeEnvironment, of_task
from adaptor.worker.execution import Child, execute
from adaptor.worker.memory import INTERVAL, MemoryMeter
from adaptor.worker.output import SpareFiles, remove_empty
from adaptor.worker.reaping import attempt_of, ended_child, signal_group, signal_process
from adaptor.worker.slots import Held


class Running:
    """One attempt whose process was started."""

    def __init__(self, held: Held, child: Child) -> None:
        self.held = held
        self.child = child
        self.started = time.time()
        self.began = time.monotonic()
        self.ending: Ending | None = None
        """Why we are ending it, if we are."""
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
        self._spare = SpareFiles()
        self._strays = False
        """Whether processes without a known task are left, to be looked at again."""

    def __len__(self) -> int:
        return len(self._by_pid)

    def loads(self, now: float) -> list[tuple[AttemptKey, float]]:
        """The running attempts with their wall seconds."""
        return [(key, now - running.began) for key, running in self._by_key.items()]

    def forget_bag(self, bag: int) -> None:
        """Its context was sent anew."""
        self._shared.pop(bag, None)

    def start(self, held: Held, deadline: float) -> None:
        """Start an attempt that will be ended at `deadline` (epoch seconds).

        Raises CannotStartError or ShortageError.
        """
        shared = self._shared.get(held.bag.bag)
        if shared is None:
            shared = self._shared[held.bag.bag] = self._environment.of_bag(held.bag)
        self._spare.give(held)
        running = Running(held, execute(held, of_task(shared, held.bag, held.lease, deadline)))
        self._by_pid[running.child.pid] = self._by_key[held.key] = running

    def reap(self) -> list[Result]:
        """Wait for all children that have ended; end what ended attempts have left behind."""
        ended: list[Held] = []
        results: list[Result] = []
        reaped = False
        while (pid := ended_child()) is not None:
            reaped = True
            running = self._by_pid.pop(pid, None)
            if running is not None:
                # As long as its leader is a zombie, the number of the group is nobody else's.
                signal_group(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            if running is not None:
                ended.append(running.held)
                results.append(self._result(running, status, usage))
        alone = self.sweep() if reaped else True
        for held in ended:
            (self._spare.add if alone else remove_empty)(held)
        return results

    def tidy(self) -> None:
        """Remove the empty files of ended attempts that no start could use."""
        self._spare.remove()

    def sweep(self) -> bool:
        """Kill the orphans that belong to no running attempt; SIGCHLD tells when they are gone.

        Returns whether there were no orphans at all, so that nothing of an ended attempt lives.
        """
        self._strays = False
        orphans = [pid for pid in processes.child_pids() if pid not in self._by_pid]
        for pid in orphans:
            if self._owner(pid) is None:
                # Whose it is may be unreadable; then it is spared while it may be a running one's.
                if self._by_pid and attempt_of(pid) is None:
                    self._strays = True
                else:
                    signal_process(pid, signal.SIGKILL)
        return not orphans

    def end(self, key: AttemptKey, ending: Ending, kill_at: float) -> bool:
        """Ask the whole tree of an attempt to end; from `kill_at` on it is forced. Whether it runs."""
        running = self._by_key.get(key)
        if running is None:
            return False
        self._mark(running, ending, kill_at)
        top = running.child.pid
        processes.send(processes.descendants_by_top({top})[top], signal.SIGTERM)
        for pid in processes.child_pids():
            if pid not in self._by_pid and self._owner(pid) is running:
                signal_process(pid, signal.SIGTERM)
        return True

    def end_all(self, ending: Ending, kill_at: float) -> None:
        """The same for everything."""
        for running in self._by_pid.values():
            self._mark(running, ending, kill_at)
        if self._by_pid:
            processes.kill_descendants(signal.SIGTERM)

    def next_kill(self) -> float:
        return min((running.kill_at for running in self._by_pid.values()), default=float("inf"))

    def kill_due(self, now: float) -> None:
        for pid, running in self._by_pid.items():
            if running.kill_at <= now:
                signal_group(pid, signal.SIGKILL)
                running.kill_at = float("inf")

    def next_chores(self) -> float:
        """When `chores` are to be done; attempts that end sooner cost no sampling."""
        oldest = next(iter(self._by_pid.values()), None)
        if oldest is None:
            return float("inf")
        return max(self._meter.next_sample, oldest.began + INTERVAL)

    def chores(self) -> None:
        """Sample the memory of what runs, and look again at what could not be told apart."""
        self._meter.sample(set(self._by_pid))
        if self._strays:
            self.sweep()

    @staticmethod
    def _mark(running: Running, ending: Ending, kill_at: float) -> None:
        running.ending = running.ending or ending
        running.kill_at = min(running.kill_at, kill_at)

    def _owner(self, pid: int) -> Running | None:
        """The running attempt that an orphan belongs to: by its session, else by its environment."""
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
