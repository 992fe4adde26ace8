"""The tasks of a worker from lease to result: queue, run, judge. Independent of the link.

A scheduler that ends a pilot signals the tasks together with the worker. A task may then end before the
worker has seen its own SIGTERM; this must not count as a failure of the task. Therefore the worker holds
each failure back for a moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from adaptor.protocol.messages import OWN_ERRORS, AttemptKey, BagContext, Ending, Lease, Result
from adaptor.worker.output import CannotStartError, ShortageError
from adaptor.worker.parts import NodeFiles, Parts
from adaptor.worker.runner import Runner
from adaptor.worker.slots import HeldTask, Slots
from adaptor.worker.timers import NEVER, Timers

CHUNK = 500  # results in one report, at most
CHUNK_BYTES = 4 * 1024 * 1024  # of answers in one report beyond the first


class Outbox:
    """Results without acknowledgement. Times are monotonic seconds, passed in."""

    def __init__(self) -> None:
        self._sent: dict[AttemptKey, tuple[float, Result]] = {}  # by the time of sending, the oldest first
        self._unsent: dict[AttemptKey, Result] = {}

    def __len__(self) -> int:
        return len(self._sent) + len(self._unsent)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._sent or key in self._unsent

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def add(self, result: Result) -> None:
        self._unsent[result.key] = result

    def acknowledge(self, keys: Iterable[AttemptKey]) -> None:
        for key in keys:
            self._sent.pop(key, None)
            self._unsent.pop(key, None)

    def batch(self, now: float, again_after: float) -> list[Result]:
        """The next results to send: unsent ones, then those sent at least `again_after` seconds ago."""
        batch: list[Result] = []
        room = CHUNK_BYTES
        while self._unsent and len(batch) < CHUNK and room > 0:
            batch.append(self._unsent.pop(next(iter(self._unsent))))
            room -= len(batch[-1].answer)
        for sent, result in self._sent.values():
            if len(batch) >= CHUNK or room <= 0 or sent > now - again_after:
                break
            batch.append(result)
            room -= len(result.answer)
        self._mark(batch, now)
        return batch

    def everything(self, now: float) -> list[Result]:
        """All results without acknowledgement; they count as sent now."""
        batch = self.results()
        self._unsent.clear()
        self._mark(batch, now)
        return batch

    def results(self) -> list[Result]:
        return [result for _, result in self._sent.values()] + list(self._unsent.values())

    def _mark(self, batch: list[Result], now: float) -> None:
        for result in batch:
            self._sent.pop(result.key, None)
            self._sent[result.key] = (now, result)


MOMENT = 1.0  # seconds for which a failure is held back; on a busy node the signals come that far apart
_PAUSE = 1.0  # seconds without a start after the machine could not start one more process
_SHORT = 1.0
"""Seconds. After an attempt that took less, the files of the next ones are opened ahead: the time that takes
would be felt."""
_LATE_INTERVAL = 1.0  # seconds between two looks for queued leases that can no longer start in time


class WorkerTasks:
    """All that a worker holds. `now` is monotonic seconds throughout."""

    def __init__(self, slots: Slots, runner: Runner, files: NodeFiles, timers: Timers) -> None:
        self.slots = slots
        self.timers = timers
        self.runner = runner
        self.openings = runner.openings
        self._parts = Parts(files, timers, self._part_ended)
        self.outbox = Outbox()
        self.started: list[AttemptKey] = []  # started and not reported yet
        self._suspects: dict[AttemptKey, tuple[float, Result]] = {}
        """Failures that the end of the pilot may have caused, the oldest first: when each counts as the
        task's own."""
        self._bags: dict[int, BagContext] = {}
        self._limits: dict[int, float] = {}  # by bag: seconds after which a task of it is ended
        self.grace = 0.0  # seconds between SIGTERM and SIGKILL of such a task
        self.ends = NEVER  # monotonic seconds at which the worker ends its tasks
        self._own_failures = timers.new(self._confirm_failures)
        self._limiting = timers.new(self._time_out)
        self._signalling = timers.new(self._signal_early)
        self._late = timers.new(self._return_late)
        self._shortage = timers.new(self._try_again)
        self._putting_off = timers.new(lambda _now: None)  # it only ends the wait: `start` looks again
        self._short_of_processes = False
        self._short = False  # whether the last attempt to end was short
        self._pilot_ends = False

    @property
    def holding(self) -> list[AttemptKey]:
        """Leases without a result in the outbox."""
        return [*self.slots.queue, *self.slots.running, *self._suspects]

    @property
    def running(self) -> list[AttemptKey]:
        """The tasks that were started."""
        waiting = self.openings.waiting
        return [*(key for key in self.slots.running if key not in waiting), *self._suspects]

    @property
    def idle(self) -> bool:
        return not (self.slots.queue or self.slots.running or self._suspects)

    def know(self, bag: BagContext) -> None:
        self._bags[bag.bag] = bag
        if bag.timeout is not None:
            self._limits[bag.bag] = bag.timeout
        self.runner.forget_bag(bag.bag)

    def forget(self, bag: int) -> None:
        """Drop the context of a bag that has ended: a worker may live through thousands of them."""
        self._bags.pop(bag, None)
        self._limits.pop(bag, None)
        self.runner.end_bag(bag)

    def limit(self, seconds: Mapping[int, float]) -> None:
        """Set the time limits of tasks by bag from now on, running ones included; seconds."""
        if seconds:
            self._limits.update(seconds)
            self._limiting.set(0.0)
            self._signalling.set(0.0)

    def accept(self, lease: Lease) -> None:
        """Queue a lease; a repeated one is ignored."""
        key = lease.key
        bag = self._bags.get(key.bag)
        if any(key in place for place in (self.outbox, self.slots.queue, self.slots.running, self._suspects)):
            return
        if bag is None:
            self._return(key, "this worker does not know its bag")
        elif not self.slots.can_ever_hold(held := HeldTask(lease, bag)):
            self._return(key, "it needs more processors, memory or GPUs than this node has for the pilot")
        else:
            self.slots.add(held)
            self._late.set(0.0)

    def start(self, now: float) -> None:
        """Start what fits and has time."""
        runner = self.runner
        while not self._short_of_processes and (
            held := self.slots.start_next(now, runner.displaces, runner.warm_on)
        ):
            if held.lease.takes_part:
                self._parts.begin(held.key)
                self.started.append(held.key)
            elif not self._start(held, now):
                self.slots.requeue(held.key)
        self._putting_off.set(self.slots.again_at)
        if self._short:
            runner.open_ahead(self.slots.queue.values())

    def tend(self, now: float) -> None:
        """Collect ended attempts."""
        for result in self.runner.reap():
            self.slots.end(result.key)
            self._short = result.wall < _SHORT
            if not is_suspect(result):
                self.outbox.add(result)
            elif self._pilot_ends:
                self.outbox.add(_as_ended(result))
            else:
                self._suspects[result.key] = now + MOMENT, result
                self._own_failures.advance(now + MOMENT)

    def start_ready(self, now: float) -> None:
        """Start attempts whose files have been opened since their turn came."""
        running = self.slots.running
        short = [key for key in self.openings.ready() if not self._start(running[key], now)]
        for key in reversed(short):  # each goes to the head of the queue
            self.slots.requeue(key)

    def abort(self, keys: Iterable[AttemptKey], kill_at: float) -> None:
        """End attempts at the daemon's request; return the leases of those that were not started."""
        started = [key for key in keys if not self.give_back(key)]
        self.runner.end(started, Ending.ABORTED, kill_at)
        self._parts.end(started, Ending.ABORTED, kill_at)

    def give_back(self, key: AttemptKey) -> bool:
        """Return a lease to the daemon. Returns False if the attempt was started."""
        if key in self.slots.queue:
            self.openings.drop(self.slots.take(key))
        elif key in self.openings.waiting:
            self.openings.drop(self.slots.running[key])
            self.slots.end(key)
        else:
            return False
        self._return(key)
        return True

    def return_queue(self) -> None:
        """Return all leases whose attempts were not started."""
        for held in self.slots.clear():
            self.openings.drop(held)
            self._return(held.key)
        for key in self.openings.waiting:
            self.give_back(key)

    def end_all(self, now: float, kill_at: float) -> None:
        """The worker leaves. Failures of this moment count as ended by that."""
        self.return_queue()
        self._pilot_ends = True
        for _, result in self._suspects.values():
            self.outbox.add(_as_ended(result))
        self._suspects.clear()
        self.runner.end_all(Ending.ENDED, now, kill_at)
        self._parts.end_all(Ending.ENDED, kill_at)

    def loads(self, now: float) -> list[tuple[AttemptKey, float]]:
        """The running attempts with their wall seconds, and the nodes kept for others."""
        return [*self.runner.loads(now), *self._parts.loads(now)]

    def _start(self, held: HeldTask, now: float) -> bool:
        """Start an attempt, or have it wait for its files. Returns False if the machine can start no more
        processes now."""
        try:
            if self.runner.start(held, time.time() + self.ends - now, now):
                self.started.append(held.key)
                # Look in time at what an attempt that has just begun is limited by, and signalled for.
                limit = held.limit(self._limits)
                if limit is not None:
                    self._limiting.advance(now + limit)
                if held.bag.signal is not None:
                    self._signalling.set(0.0)
        except ShortageError:
            self._short_of_processes = True
            self._shortage.set(now + _PAUSE)
            return False
        except CannotStartError as error:
            self.slots.end(held.key)
            self.outbox.add(Result(held.key, Ending.NOT_STARTED, error=str(error), exit_code=error.exit_code))
        return True

    def _part_ended(self, result: Result) -> None:
        self.slots.end(result.key)
        self.outbox.add(result)

    def _confirm_failures(self, now: float) -> None:
        """The pilot has not ended: those that were held back long enough count as the tasks' own."""
        for key, (due, result) in list(self._suspects.items()):
            if due > now:
                self._own_failures.set(due)
                return
            del self._suspects[key]
            self.outbox.add(result)

    def _time_out(self, now: float) -> None:
        self._limiting.advance(self.runner.time_out(self._limits, now, now + self.grace))

    def _signal_early(self, now: float) -> None:
        """Send the signals that bags ask for before the end of the pilot or of a task's own time."""
        self._signalling.advance(self.runner.signal_early(self._limits, now, self.ends))

    def _try_again(self, _now: float) -> None:
        self._short_of_processes = False

    def _return_late(self, now: float) -> None:
        if self.slots.queue:
            self._late.set(now + _LATE_INTERVAL)
        for held in self.slots.too_late(now):
            self.openings.drop(held)
            self._return(held.key, f"it needs {held.lease.needs:.0f} s, more than the pilot has left")

    def _return(self, key: AttemptKey, why: str | None = None) -> None:
        self.outbox.add(Result(key, Ending.RETURNED, error=why))


def is_suspect(result: Result) -> bool:
    """True if it is a failure that the end of the pilot could have caused."""
    failed = result.ending is Ending.EXITED and result.exit_code != 0
    if result.answer[:1] in OWN_ERRORS:
        return False
    return failed or result.ending is Ending.SIGNALLED


def _as_ended(result: Result) -> Result:
    return msgspec.structs.replace(result, ending=Ending.ENDED)
