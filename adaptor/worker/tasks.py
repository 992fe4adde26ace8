"""The tasks of a worker from lease to result: queue, run, judge. Independent of the link.

A scheduler that ends a pilot signals the tasks together with the worker. A task may then end before the
worker has seen its own SIGTERM; this must not count as a failure of the task. Therefore the worker holds
each failure back for a moment (`SuspectFailures`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec

from adaptor.protocol.calls import OWN_ERRORS
from adaptor.protocol.messages import AttemptKey, BagContext, Ending, Lease, Result
from adaptor.worker.outbox import Outbox
from adaptor.worker.parts import Parts
from adaptor.worker.runner import Runner
from adaptor.worker.slots import HeldTask, Slots
from adaptor.worker.start_errors import CannotStartError, ShortageError

MOMENT = 1.0
"""Seconds for which a failure is held back; on a busy node the signals come that far apart."""
_PAUSE = 1.0
"""Seconds without a start after the machine could not start one more process."""
_SHORT = 1.0
"""Seconds. After an attempt that took less, the files of the next ones are opened ahead: the time that takes
would be felt."""
_LATE_INTERVAL = 1.0
"""Seconds between two looks for queued leases that can no longer start in time."""


class SuspectFailures:
    """Failures that the end of the pilot may have caused. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._held: dict[AttemptKey, tuple[float, Result]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._held

    def keys(self) -> list[AttemptKey]:
        return list(self._held)

    def add(self, result: Result, now: float) -> None:
        self._held[result.key] = (now + MOMENT, result)

    def due(self) -> float:
        """When the oldest counts as the task's own failure."""
        return next((until for until, _ in self._held.values()), float("inf"))

    def take_due(self, now: float) -> list[Result]:
        """Take out those that count as the tasks' own failures now."""
        results = [result for until, result in self._held.values() if until <= now]
        for result in results:
            del self._held[result.key]
        return results

    def take_as_ended(self) -> list[Result]:
        """Take out all: the pilot is ending, and has ended these attempts."""
        results = [_as_ended(result) for _, result in self._held.values()]
        self._held.clear()
        return results


class Tasks:
    """All that a worker holds. `now` is monotonic seconds throughout."""

    def __init__(self, slots: Slots, runner: Runner, parts: Parts) -> None:
        self.slots = slots
        self.runner = runner
        self._parts = parts
        self.outbox = Outbox()
        self.started: list[AttemptKey] = []
        """Started and not reported yet."""
        self._suspects = SuspectFailures()
        self._bags: dict[int, BagContext] = {}
        self._limits: dict[int, float] = {}
        """By bag: seconds after which a task of it is ended."""
        self.grace = 0.0
        """Seconds between SIGTERM and SIGKILL of such a task."""
        self._next_limit = self._next_signal = float("inf")
        self._next_start = 0.0
        self._next_late = 0.0
        self._short = False
        """Whether the last attempt to end was short."""
        self._pilot_ends = False

    @property
    def holding(self) -> list[AttemptKey]:
        """Leases without a result in the outbox."""
        return [*self.slots.queue, *self.slots.running, *self._suspects.keys()]

    @property
    def running(self) -> list[AttemptKey]:
        """Those that were started."""
        opening = self.runner.opening
        return [*(key for key in self.slots.running if key not in opening), *self._suspects.keys()]

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
        """By bag: for how long a task may run from now on, those included that run."""
        if seconds:
            self._limits.update(seconds)
            self._next_limit = 0.0

    def signal_early(self, now: float, ends: float) -> None:
        """Send the signals that bags ask for before the pilot's end. `ends`: when the worker ends its tasks,
        monotonic seconds."""
        if now >= self._next_signal:
            self._next_signal = self.runner.signal_early(now, ends)

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
            self._next_late = 0.0

    def start(self, now: float, deadline: float) -> None:
        """Start what fits and has time. `deadline`: epoch seconds at which the worker would end it."""
        while now >= self._next_start and (held := self.slots.start_next(time.time())):
            if held.lease.takes_part:
                self._parts.begin(held.key)
                self.started.append(held.key)
            else:
                self._start(held, now, partial(self.runner.start, held, deadline))
        if self._short:
            self.runner.prepare(self.slots.queue.values())

    def tend(self, now: float) -> None:
        """Collect ended attempts, kill those whose time is up, and do what else is due."""
        for result in self.runner.reap():
            self.slots.end(result.key)
            self._short = result.wall < _SHORT
            self._judge(result, now)
        for result in self._parts.tend(now):
            self.slots.end(result.key)
            self.outbox.add(result)
        for result in self._suspects.take_due(now):
            self.outbox.add(result)
        for opening in self.runner.take_over(now):
            self._start(opening.held, now, partial(self.runner.start_opened, opening))
        if now >= self._next_limit:
            self._next_limit = self.runner.time_out(self._limits, now, now + self.grace)
        self.runner.name_outputs(now)
        self.runner.kill_due(now)
        if now >= self.runner.next_chores():
            self.runner.chores()
        if self.slots.queue and now >= self._next_late:
            self._next_late = now + _LATE_INTERVAL
            self._return_late()

    def tidy(self) -> None:
        """After the starts of a turn, and before its results are reported."""
        self.runner.tidy()

    def next_due(self) -> float:
        """When `tend` or `start` is due even without a signal."""
        dues = [
            self.runner.next_kill(),
            self.runner.next_naming(),
            self._next_limit,
            self._next_signal,
            self.runner.next_chores(),
            self.runner.next_look(),
            self._suspects.due(),
            self._parts.next_due(),
        ]
        if self.slots.queue:
            dues.append(self._next_late)
            dues.append(self._next_start if self._next_start > time.monotonic() else float("inf"))
        return min(dues)

    def abort(self, keys: Iterable[AttemptKey], kill_at: float) -> None:
        """End attempts at the daemon's request; return the leases of those that were not started."""
        started = [key for key in keys if not self.give_back(key)]
        self.runner.end(started, Ending.ABORTED, kill_at)
        self._parts.end(started, Ending.ABORTED, kill_at)

    def give_back(self, key: AttemptKey) -> bool:
        """Return a lease to the daemon. Returns False if the attempt was started."""
        if key in self.slots.queue:
            self.runner.discard(self.slots.take(key))
        elif self.runner.give_up(key):
            self.slots.end(key)
        else:
            return False
        self._return(key)
        return True

    def return_queue(self) -> None:
        """Return all leases whose attempts were not started."""
        for held in self.slots.clear():
            self.runner.discard(held)
            self._return(held.key)
        for key in self.runner.opening:
            self.give_back(key)

    def end_all(self, now: float, kill_at: float) -> None:
        """The worker leaves. Failures of this moment count as ended by that."""
        self.return_queue()
        self._pilot_ends = True
        for result in self._suspects.take_as_ended():
            self.outbox.add(result)
        self.runner.end_all(Ending.ENDED, now, kill_at)
        self._parts.end_all(Ending.ENDED, kill_at)

    def loads(self, now: float) -> list[tuple[AttemptKey, float]]:
        """The running attempts with their wall seconds, and the nodes kept for others."""
        return [*self.runner.loads(now), *self._parts.loads(now)]

    def _start(self, held: HeldTask, now: float, start: Callable[[], bool]) -> None:
        """`start` returns whether the attempt runs, or waits for its file system."""
        try:
            if start():
                self.started.append(held.key)
                self._watch(held, now)
        except ShortageError:
            self.slots.requeue(held.key)
            self._next_start = now + _PAUSE
        except CannotStartError as error:
            self.slots.end(held.key)
            self.outbox.add(Result(held.key, Ending.NOT_STARTED, error=str(error), exit_code=error.exit_code))

    def _watch(self, held: HeldTask, now: float) -> None:
        """Look in time at what an attempt that has just begun is limited by, and signalled for."""
        limit = held.limit(self._limits)
        if limit is not None:
            self._next_limit = min(self._next_limit, now + limit)
        if held.bag.signal is not None:
            self._next_signal = 0.0

    def _judge(self, result: Result, now: float) -> None:
        if not is_suspect(result):
            self.outbox.add(result)
        elif self._pilot_ends:
            self.outbox.add(_as_ended(result))
        else:
            self._suspects.add(result, now)

    def _return_late(self) -> None:
        for held in self.slots.too_late(time.time()):
            self.runner.discard(held)
            self._return(held.key, f"it needs {held.lease.needs:.0f} s, more than the pilot has left")

    def _return(self, key: AttemptKey, why: str | None = None) -> None:
        self.outbox.add(Result(key, Ending.RETURNED, error=why))


def is_suspect(result: Result) -> bool:
    """Whether it is a failure that the end of the pilot could have caused."""
    failed = result.ending is Ending.EXITED and result.exit_code != 0
    if result.answer[:1] in OWN_ERRORS:
        return False
    return failed or result.ending is Ending.SIGNALLED


def _as_ended(result: Result) -> Result:
    return msgspec.structs.replace(result, ending=Ending.ENDED)
