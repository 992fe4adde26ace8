"""The tasks of a worker from lease to result: queue, run, judge. It knows nothing of the link."""

from __future__ import annotations

import time

from adaptor.protocol.messages import AttemptKey, BagContext, Ending, Lease, Result
from adaptor.worker.execution import CannotStartError, ShortageError
from adaptor.worker.outbox import Outbox
from adaptor.worker.output import remove_empty
from adaptor.worker.runner import Runner
from adaptor.worker.slots import Held, Slots
from adaptor.worker.suspect_results import Doubts, as_ended, doubtful

_BREATH = 1.0
"""Seconds without a start after the machine had no room for one more process."""
_LATE_INTERVAL = 1.0
"""Seconds between two looks for queued leases that can no longer be started in time."""


class Tasks:
    """All that a worker holds. `now` is monotonic seconds throughout."""

    def __init__(self, slots: Slots, runner: Runner) -> None:
        self.slots = slots
        self.runner = runner
        self.outbox = Outbox()
        self.started: list[AttemptKey] = []
        """Not reported yet."""
        self._doubts = Doubts()
        self._bags: dict[int, BagContext] = {}
        self._next_start = 0.0
        self._next_late = 0.0
        self._pilot_ends = False

    @property
    def holding(self) -> list[AttemptKey]:
        """Leases without a result in the outbox."""
        return [*self.slots.queue, *self.running]

    @property
    def running(self) -> list[AttemptKey]:
        """Those that were started."""
        return [*self.slots.running, *self._doubts.keys()]

    @property
    def idle(self) -> bool:
        return not (self.slots.queue or self.slots.running or self._doubts)

    def know(self, bag: BagContext) -> None:
        self._bags[bag.bag] = bag
        self.runner.forget_bag(bag.bag)

    def accept(self, lease: Lease) -> None:
        """Queue a lease; one that came before is not queued again."""
        key = lease.key
        bag = self._bags.get(key.bag)
        if any(key in place for place in (self.outbox, self.slots.queue, self.slots.running, self._doubts)):
            return
        if bag is None:
            self._return(key, "its bag is not known here")
        elif not self.slots.can_ever_hold(bag):
            self._return(key, "it needs more processors or memory than this node has for the pilot")
        else:
            self.slots.add(Held(lease, bag))
            self._next_late = 0.0

    def start(self, now: float, deadline: float) -> None:
        """Start what fits and has the time. `deadline`: epoch seconds at which it would be ended."""
        while now >= self._next_start and (held := self.slots.start_next(time.time())):
            self._start(held, now, deadline)

    def tend(self, now: float) -> None:
        """See to what has ended, is to be killed, or has become due in another way."""
        for result in self.runner.reap():
            self.slots.end(result.key)
            self._judge(result, now)
        for result in self._doubts.believed(now):
            self.outbox.add(result)
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
        """When `tend` or `start` has something to do without a signal."""
        dues = [self.runner.next_kill(), self.runner.next_chores(), self._doubts.due()]
        if self.slots.queue:
            dues.append(self._next_late)
            dues.append(self._next_start if self._next_start > time.monotonic() else float("inf"))
        return min(dues)

    def abort(self, key: AttemptKey, kill_at: float) -> None:
        """End an attempt because the daemon said so; hand it back where it was not started."""
        if not self.give_back(key):
            self.runner.end(key, Ending.ABORTED, kill_at)

    def give_back(self, key: AttemptKey) -> bool:
        """Whether it was not started yet."""
        if key not in self.slots.queue:
            return False
        self.slots.take(key)
        self._return(key)
        return True

    def return_queue(self) -> None:
        """Hand back all that was not started."""
        for held in self.slots.clear():
            self._return(held.key)

    def end_all(self, kill_at: float) -> None:
        """The worker leaves. Failures of this moment are put down to that."""
        self.return_queue()
        self._pilot_ends = True
        for result in self._doubts.explained():
            self.outbox.add(result)
        self.runner.end_all(Ending.ENDED, kill_at)

    def _start(self, held: Held, now: float, deadline: float) -> None:
        try:
            self.runner.start(held, deadline)
            self.started.append(held.key)
        except ShortageError:
            remove_empty(held)
            self.slots.requeue(held.key)
            self._next_start = now + _BREATH
        except CannotStartError as error:
            self.slots.end(held.key)
            remove_empty(held)
            self.outbox.add(Result(held.key, Ending.NOT_STARTED, error=str(error)))

    def _judge(self, result: Result, now: float) -> None:
        if not doubtful(result):
            self.outbox.add(result)
        elif self._pilot_ends:
            self.outbox.add(as_ended(result))
        else:
            self._doubts.add(result, now)

    def _return_late(self) -> None:
        for held in self.slots.too_late(time.time()):
            self._return(held.key, f"it needs {held.lease.needs:.0f} s, more than the pilot has left")

    def _return(self, key: AttemptKey, why: str | None = None) -> None:
        self.outbox.add(Result(key, Ending.RETURNED, error=why))
