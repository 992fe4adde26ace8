"""The attempts that run on this node: starts, ends and reaps them, and kills what they leave running."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from adaptor.processes.devices import Devices
from adaptor.processes.environment import variables_of
from adaptor.processes.identity import Process
from adaptor.processes.trees import child_pids, send, send_to_descendants, trees_of
from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.units import format_duration
from adaptor.worker.calls.warm_processes import WarmProcesses
from adaptor.worker.environment import NodeEnvironment, of_lease, of_task, on_several
from adaptor.worker.execution import Child, execute
from adaptor.worker.jobs.as_job import TaskJobs
from adaptor.worker.memory import INTERVAL, GpuMemoryMeter, MemoryMeter, OomKills, held_by, oom_kill_counter
from adaptor.worker.openings import Openings
from adaptor.worker.output import CannotStartError, ShortageError, TaskFiles
from adaptor.worker.parts import NodeFiles
from adaptor.worker.scripts import Scripts
from adaptor.worker.slots import HeldTask
from adaptor.worker.staged.node_bundles import NodeBundles
from adaptor.worker.timers import NEVER, Timers

if TYPE_CHECKING:  # only workers of calls need it
    from adaptor.worker.calls.warm import CallAnswer

NAMED_AFTER = 1.0
"""Seconds after its begin at which a call's output files get its names: people look at what runs for long."""


class Running:
    """One attempt whose process was started."""

    def __init__(self, held: HeldTask, child: Child) -> None:
        self.held = held
        self.child = child
        self.started = time.time()
        self.began = time.monotonic()
        self.ending: Ending | None = None  # why the worker ends it, if it does
        self.kill_at = NEVER  # monotonic seconds
        self.terminate_at = NEVER
        """Monotonic seconds of SIGTERM for an attempt that got the signal of its bag when the worker had to
        leave."""
        self.limit = NEVER  # seconds after which it was ended, if that is why
        self.signalled = False  # whether it got the signal of its bag
        self.unnamed: tuple[str, str] | None = None
        """The names of a call's output files as long as they are not its own."""


class Runner:
    """All running attempts. `now` is monotonic seconds throughout."""

    def __init__(
        self,
        environment: NodeEnvironment,
        devices: Devices,
        files: NodeFiles,
        scripts: Scripts,
        jobs: TaskJobs,
        bundles: NodeBundles,
        processors: int,
        timers: Timers,
        spare_memory: Callable[[], int],
    ) -> None:
        """`spare_memory`: returns the bytes that no attempt here needs by its size."""
        self.openings = Openings(timers, scripts.output_of, bundles.prepare)
        self.warm = WarmProcesses(timers, processors, spare_memory, self.openings.release)
        self._kills = timers.new(self._kill_due)
        self._chores = timers.new(self._do_chores)
        self._naming = timers.new(self._name_outputs)
        self._devices = devices
        self._files = files
        self._scripts = scripts
        self._jobs = jobs
        self.bundles = bundles
        self._meter = MemoryMeter()
        self._oom = OomKills(oom_kill_counter())
        self._gpu_meter = GpuMemoryMeter()
        self._environment = environment
        self.shell = ""  # of the site, for lines; empty: it names none
        self._shared: dict[int, dict[str, str]] = {}
        """Environment that the tasks of a bag have in common here, by bag."""
        self._by_pid: dict[int, Running] = {}
        self._by_key: dict[AttemptKey, Running] = {}
        self._unattributed = False
        """True if some orphans could not be attributed to a task; `_do_chores` looks again."""

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors that are readable while there is an answer of a call, or attempts may start."""
        return self.warm.fd, self.openings.fd

    def loads(self, now: float) -> list[tuple[AttemptKey, float]]:
        """The running attempts with their wall seconds."""
        return [(key, now - running.began) for key, running in self._by_key.items()]

    def forget_bag(self, bag: int) -> None:
        """The daemon has sent its context again."""
        self._shared.pop(bag, None)

    def end_bag(self, bag: int) -> None:
        self.forget_bag(bag)
        self._scripts.forget(bag)
        self.warm.end_bag(bag, time.monotonic())
        self.bundles.forget(bag)

    def open_ahead(self, queue: Iterable[HeldTask]) -> None:
        """Begin to open the files of these attempts, which will start soon in this order."""
        first = next(iter(queue), None)
        if first is not None and not self.warm.are_silent(first.key.bag):
            self.openings.open_ahead(queue)

    def displaces(self, held: HeldTask) -> float | None:
        """Time since which the process waits for calls of another bag that the start of an attempt would
        end."""
        return self.warm.would_displace(held, len(self._by_pid))

    def warm_on(self, held: HeldTask) -> list[tuple[int, ...]]:
        """The processors of each process that waits for calls of an attempt's bag."""
        return self.warm.processors_of(held.key.bag)

    def start(self, held: HeldTask, deadline: float, now: float) -> bool:
        """Start an attempt that will be ended at `deadline` (epoch seconds).

        Returns whether it runs; False: it waits for its files; call `start` again once it is `ready`.
        Raises CannotStartError or ShortageError.
        """
        if held.lease.call is not None:  # in a process that has files for it, if there is one
            own = of_lease(held.bag, held.lease, deadline) | self._jobs.numbers(held.bag, held.lease)
            child = self.warm.go_on(held, own)
            if child is not None:
                self.openings.drop(held)
                self._note(Running(held, child))
                return True
        try:
            files = self.openings.open(held, now)
            if files is None:
                return False
            try:
                running = Running(held, self._begin(held, self._variables(held, deadline), files))
            finally:
                files.close()
        except (CannotStartError, ShortageError):
            self.openings.ended(held, alone=False)
            raise
        self._note(running)
        return True

    def _variables(self, held: HeldTask, deadline: float) -> dict[str, str]:
        """The environment of an attempt before the bundle of its bag adds to it. Raises CannotStartError."""
        shared = self._shared.get(held.bag.bag)
        if shared is None:
            shared = self._shared[held.bag.bag] = self._environment.of_bag(held.bag)
        environment = of_task(shared, held.bag, held.lease, deadline, bound=bool(held.cpus))
        environment.update(self._devices.of_task(held.gpus))
        if held.lease.nodes:
            path = self._files.write(held.key, held.lease.nodes)
            environment.update(on_several(held.lease.nodes, str(path)))
        environment = self._scripts.with_scratch(environment, held.bag, held.lease)
        return self._jobs.environment(environment, held.bag, held.lease)

    def _note(self, running: Running) -> None:
        """Note that an attempt runs."""
        pid, held = running.child.pid, running.held
        self._by_pid[pid] = self._by_key[held.key] = running
        if held.lease.call is not None:
            running.unnamed = self.warm.names(pid)
            self._naming.advance(running.began + NAMED_AFTER)
        self._chores.advance(running.began + INTERVAL)

    def _begin(self, held: HeldTask, environment: dict[str, str], files: TaskFiles) -> Child:
        """Start the process of an attempt, or its call. Raises CannotStartError or ShortageError."""
        environment = self.bundles.environment(held.bag, environment)
        held = self.bundles.starting(held, environment)
        if held.lease.call is not None:
            return self.warm.start(held, environment, files, len(self._by_pid))
        self.warm.make_room(time.monotonic(), len(self._by_pid) + 1, held.gpus)
        return execute(held, environment, files, self._scripts.copy(held.bag, held.lease), self.shell)

    def leave(self) -> None:
        """Remove what tasks were started from, and the files that they have not used."""
        self.warm.end_all()
        self.openings.tidy()
        self._scripts.remove()
        self._jobs.remove()
        self.bundles.remove()

    def reap(self) -> list[Result]:
        """Wait for all children that have ended; end what ended attempts have left behind."""
        results = [self._answered(pid, answer) for pid, answer in self.warm.answers()]
        ended: list[HeldTask] = []
        reaped = False
        while (pid := ended_child()) is not None:
            reaped = True
            running = self._by_pid.pop(pid, None)
            if running is not None or pid in self.warm:
                # While its leader is a zombie, no other process group can have this id.
                signal_group(pid, signal.SIGKILL)
                self.warm.gone(pid)
            if running is not None and running.held.lease.nodes:
                self._files.kill(running.held.key)
                self._files.remove(running.held.key)
            _, status, usage = os.wait4(pid, 0)
            if running is not None:
                ended.append(running.held)
                results.append(self._result(running, status, usage))
        if reaped and not self._by_pid:
            self._oom.forget()
        alone = self.sweep() if reaped else True
        for held in ended:
            self.openings.ended(held, alone=alone)
        return results

    def sweep(self) -> bool:
        """Kill the orphans that belong to no running attempt; SIGCHLD reports their ends.

        Returns whether there were no orphans at all, so that no process of an ended attempt lives.
        """
        self._unattributed = False
        orphans = self._orphans()
        for pid in orphans:
            if self._owner(pid) is None and not self.warm.leads(pid):
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

    def end_all(self, ending: Ending, now: float, kill_at: float) -> None:
        """End all attempts. Those whose bag asks for a signal get it first if they have not had it, and
        SIGTERM in the middle of the time that is left."""
        early = [each for each in self._by_pid.values() if each.held.bag.signal and not each.signalled]
        for running in early:
            self._signal(running)
            self._mark(running, ending, kill_at)
            running.terminate_at = (now + kill_at) / 2
            self._kills.advance(running.terminate_at)
        if early:
            self.end(
                [running.held.key for running in self._by_pid.values() if not running.ending], ending, kill_at
            )
            return
        for running in self._by_pid.values():
            self._mark(running, ending, kill_at)
        if self._by_pid:
            send_to_descendants(signal.SIGTERM)

    def signal_early(self, limits: Mapping[int, float], now: float, ends: float) -> float:
        """Send the signals that bags ask for and that are due; when the next one is.

        Args:
            limits: seconds by bag, for leases that have no limit of their own.
            ends: when the worker ends its tasks, monotonic seconds.
        """
        next_due = NEVER
        for running in self._by_pid.values():
            wanted = running.held.bag.signal
            if wanted is None or running.signalled or running.ending:
                continue
            limit = running.held.limit(limits)
            end = ends if limit is None else min(ends, running.began + limit)
            due = wanted.due_at(running.began, end)
            if due <= now:
                self._signal(running)
            else:
                next_due = min(next_due, due)
        return next_due

    @staticmethod
    def _signal(running: Running) -> None:
        wanted = running.held.bag.signal
        assert wanted is not None, "its bag asks for none"
        running.signalled = True
        signal_group(running.child.pid, signal.Signals[wanted.name])

    def time_out(self, limits: Mapping[int, float], now: float, kill_at: float) -> float:
        """End the attempts that have run for longer than their leases or bags allow; when the next one has.

        `limits`: seconds by bag, for leases that have no limit of their own.
        """
        late, next_due = [], NEVER
        for key, running in self._by_key.items():
            limit = running.held.limit(limits)
            if limit is None or running.ending:
                continue
            if running.began + limit <= now:
                running.limit = limit
                late.append(key)
            else:
                next_due = min(next_due, running.began + limit)
        self.end(late, Ending.TIMED_OUT, kill_at)
        return next_due

    def _name_outputs(self, now: float) -> None:
        """Give the output files of calls that run for long their names."""
        unnamed = [running for running in self._by_pid.values() if running.unnamed is not None]
        for running in unnamed:
            if running.began + NAMED_AFTER <= now and running.unnamed is not None:
                self.openings.name(running.held, running.unnamed)
                running.unnamed = None
        dues = (running.began + NAMED_AFTER for running in unnamed if running.unnamed is not None)
        self._naming.set(min(dues, default=NEVER))

    def _kill_due(self, now: float) -> None:
        terminated = [running for running in self._by_pid.values() if running.terminate_at <= now]
        for running in terminated:
            running.terminate_at = NEVER
        self.end([running.held.key for running in terminated], Ending.ENDED, NEVER)
        for pid, running in self._by_pid.items():
            if running.kill_at <= now:
                signal_group(pid, signal.SIGKILL)
                running.kill_at = NEVER
        dues = (min(running.kill_at, running.terminate_at) for running in self._by_pid.values())
        self._kills.set(min(dues, default=NEVER))

    def _do_chores(self, now: float) -> None:
        """Sample the memory of running attempts, and look again at orphans without a known task.

        Attempts that end sooner cost no sampling.
        """
        oldest = next(iter(self._by_pid.values()), None)
        if oldest is None:
            return
        due = max(self._meter.next_sample, oldest.began + INTERVAL)
        if now < due:
            self._chores.set(due)
            return
        trees = self._meter.sample(set(self._by_pid))
        for pid, tree in trees.items():
            if self._exceeds_memory(pid, tree):
                running = self._by_pid[pid]
                self._mark(running, Ending.OUT_OF_MEMORY, NEVER)
                for process in tree:
                    send(process, signal.SIGKILL)
        with_gpus = [pid for pid in trees if self._by_pid[pid].held.gpus]
        self._gpu_meter.sample({pid: [each.pid for each in trees[pid]] for pid in with_gpus})
        if self._unattributed:
            self.sweep()
        self._chores.set(self._meter.next_sample)

    def _exceeds_memory(self, pid: int, tree: Iterable[Process]) -> bool:
        """True if an attempt holds more memory than it may. Shared memory is counted once."""
        held = self._by_pid[pid].held
        most = held.task.memory
        if not held.bag.limit_memory or most is None or self._meter.seen(pid) <= most:
            return False
        return held_by(tree) > most

    def _ran_out_of_memory(self, status: int) -> bool:
        """True if the kernel has killed this attempt, or the only one that there was, for lack of memory.

        A shell reports a killed command by its exit code.
        """
        by_kill = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        by_shell = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 128 + signal.SIGKILL
        failed_alone = status != 0 and not self._by_pid
        return (by_kill or by_shell or failed_alone) and self._oom.take()

    def _mark(self, running: Running, ending: Ending, kill_at: float) -> None:
        running.ending = running.ending or ending
        running.kill_at = min(running.kill_at, kill_at)
        self._kills.advance(running.kill_at)

    def _orphans(self) -> list[int]:
        """Processes that others have left to the worker."""
        return [pid for pid in child_pids() if pid not in self._by_pid and pid not in self.warm]

    def _owner(self, pid: int) -> Running | None:
        """The running attempt that an orphan belongs to, by its session, else by its environment."""
        with contextlib.suppress(ProcessLookupError):
            of_session = self._by_pid.get(os.getsid(pid))
            if of_session is not None:
                return of_session
        key = attempt_of(pid)
        return self._by_key.get(key) if key else None

    def _answered(self, pid: int, answer: CallAnswer) -> Result:
        """A call has ended, and its process waits for the next one."""
        running = self._by_pid.pop(pid)
        key = running.held.key
        del self._by_key[key]
        self._settle_files(running, answer)
        sampled, on_gpus = self._meter.peak(pid, 0), self._gpu_meter.peak(pid)
        if answer.refused or running.ending:
            self.warm.end(pid, time.monotonic())
        else:
            self.warm.rest(pid, time.monotonic())
        if answer.refused:
            return Result(key, running.ending or Ending.NOT_STARTED, error=answer.error)
        return Result(
            key,
            Ending.EXITED,
            started=running.started,
            wall=time.monotonic() - running.began,
            cpu=answer.cpu,
            peak_memory=max(sampled, answer.peak),
            peak_gpu_memory=on_gpus,
            exit_code=1 if answer.error else 0,
            error=answer.error or None,
            answer=answer.value,
        )

    def _settle_files(self, running: Running, answer: CallAnswer) -> None:
        """Settle whether the call keeps its output files, or leaves them to the next one."""
        pid = running.child.pid
        named = self.warm.names(pid) is not None and running.unnamed is None
        if answer.kept:
            self.warm.was_silent(pid, named=named)
        else:
            self.warm.wrote(pid)
            alone = answer.alone and not (answer.reaped and self._orphans())
            self.openings.ended(running.held, alone=alone)

    def _result(self, running: Running, status: int, usage: resource.struct_rusage) -> Result:
        pid = running.child.pid
        running.child.reaped()
        del self._by_key[running.held.key]
        signalled = os.WIFSIGNALED(status)
        ending = running.ending or (Ending.SIGNALLED if signalled else Ending.EXITED)
        if running.ending is None and self._ran_out_of_memory(status):
            ending = Ending.OUT_OF_MEMORY
        timed_out = running.ending is Ending.TIMED_OUT
        return Result(
            running.held.key,
            ending,
            started=running.started,
            wall=time.monotonic() - running.began,
            cpu=usage.ru_utime + usage.ru_stime,
            peak_memory=self._meter.peak(pid, usage.ru_maxrss),
            peak_gpu_memory=self._gpu_meter.peak(pid),
            # How a task ends that is out of time says nothing of it.
            exit_code=None if signalled or timed_out else os.WEXITSTATUS(status),
            signal=os.WTERMSIG(status) if signalled and not timed_out else None,
            error=f"time-out after {format_duration(running.limit)}" if timed_out else None,
        )


def ended_child() -> int | None:
    """A child that has ended and was not waited for yet."""
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
    """Signal a child that was not waited for yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
