"""One bag in memory: which of its tasks wait, which are held by workers, which have ended.

Small on purpose: a waiting task costs a few bytes, its command stays in the journal until leased.
"""

from __future__ import annotations

from array import array
from collections import deque

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.model import TASK_TRANSITIONS, TaskState
from adaptor.scheduling.donation_facts import NEVER_PREEMPTED, Preempted

_CODES = {state: code for code, state in enumerate(TaskState)}
_STATES = list(TaskState)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """A bag in numbers, as the journal keeps it."""

    waiting: int
    leased: int
    done: int
    failed: int
    cancelled: int
    retried: int
    runtime: float
    first_done: float | None


class Bag:
    """The tasks 0 … total − 1 of one bag and their states."""

    def __init__(self, id: int, spec: BagSpec, total: int) -> None:
        self.id = id
        self.spec = spec
        self.total = total
        self.waiting: deque[int] = deque()
        self.live: dict[int, set[int]] = {}
        """Attempts that workers hold, by task."""
        self.adrift: dict[int, set[int]] = {}
        """Attempts that count no longer but whose worker may still tell how they ended, by task."""
        self.charged: dict[int, int] = {}
        """Failures of their own, by task."""
        self.preempted: dict[int, Preempted] = {}
        """By unfinished task: its donated nodes that were taken while it ran."""
        self.retried = 0
        """Failed attempts that were tried again."""
        self.runtime = 0.0
        """Seconds that the done tasks took, in sum."""
        self.squares = 0.0
        """The sum of their squares."""
        self.first_done: float | None = None
        self._states = bytearray(total)
        self._attempts = array("H", bytes(2 * total))
        self._counts = dict.fromkeys(TaskState, 0)
        self._counts[TaskState.WAITING] = total

    def fill(self) -> None:
        """Put all tasks into the queue (a new bag)."""
        self.waiting.extend(range(self.total))

    def restore(self, task: int, state: TaskState, attempts: int, charged: int) -> None:
        """Set what the journal says of one task; tasks come in the order in which they wait."""
        self._set(task, state)
        self._attempts[task] = attempts
        if charged:
            self.charged[task] = charged
        if state is TaskState.WAITING:
            self.waiting.append(task)

    def state(self, task: int) -> TaskState:
        return _STATES[self._states[task]]

    def attempts(self, task: int) -> int:
        """How many attempts of the task there have been."""
        return self._attempts[task]

    def count(self, state: TaskState) -> int:
        return self._counts[state]

    def tally(self) -> Tally:
        counts = {state.value: self._counts[state] for state in TaskState}
        return Tally(**counts, retried=self.retried, runtime=self.runtime, first_done=self.first_done)

    @property
    def ended(self) -> bool:
        return not self._counts[TaskState.WAITING] and not self._counts[TaskState.LEASED]

    def lease(self, task: int) -> int:
        """Give out a waiting task (already off the queue) or a replica; the new attempt's number."""
        if self.state(task) is TaskState.WAITING:
            self._move(task, TaskState.LEASED)
        self._attempts[task] += 1
        attempt = self._attempts[task]
        self.live.setdefault(task, set()).add(attempt)
        return attempt

    def revive(self, task: int, attempt: int) -> None:
        """An attempt that was given up turns out to run still."""
        if self.state(task) is TaskState.WAITING:
            self.waiting.remove(task)
            self._move(task, TaskState.LEASED)
        _discard(self.adrift, task, attempt)
        self.live.setdefault(task, set()).add(attempt)

    def expects(self, task: int, attempt: int) -> bool:
        """Whether the end of this attempt is still to be told; a second telling is not expected."""
        return attempt in self.live.get(task, ()) or attempt in self.adrift.get(task, ())

    def release(self, task: int, attempt: int) -> None:
        """An attempt is over, whatever came of it."""
        _discard(self.live, task, attempt)
        _discard(self.adrift, task, attempt)

    def set_adrift(self, task: int, attempt: int) -> None:
        """An attempt is given up; it may have a result all the same."""
        _discard(self.live, task, attempt)
        self.adrift.setdefault(task, set()).add(attempt)

    def take(self, position: int) -> int:
        """Take the task at this position off the queue."""
        task = self.waiting[position]
        del self.waiting[position]
        return task

    def put_back(self, task: int, *, first: bool) -> None:
        """A task without live attempts waits again, at the head of the queue or at its end."""
        self._move(task, TaskState.WAITING)
        if first:
            self.waiting.appendleft(task)
        else:
            self.waiting.append(task)

    def charge(self, task: int) -> bool:
        """Count a failure of the task's own; whether it may be tried again."""
        self.charged[task] = self.charged.get(task, 0) + 1
        again = self.charged[task] <= self.spec.retries
        self.retried += again
        return again

    def preempted_of(self, task: int) -> Preempted:
        return self.preempted.get(task, NEVER_PREEMPTED)

    def preempt(self, task: int, ran: float) -> None:
        """The donated node of a task was taken after so many seconds."""
        self.preempted[task] = self.preempted_of(task).again(ran)

    def credit(self, wall: float, at: float) -> None:
        """Count a result."""
        self.runtime += wall
        self.squares += wall * wall
        self.first_done = at if self.first_done is None else min(at, self.first_done)

    def end(self, task: int, state: TaskState) -> set[int]:
        """The task has ended; returns its other live attempts, which are of no use now."""
        if self.state(task) is TaskState.WAITING:
            self.waiting.remove(task)
        self._move(task, state)
        self.preempted.pop(task, None)
        others = self.live.pop(task, set())
        for attempt in others:
            self.set_adrift(task, attempt)
        return others

    def cancel(self) -> list[int]:
        """Cancel all unfinished tasks; returns their numbers. Live attempts stay until released."""
        self.waiting.clear()
        unfinished = [task for task in range(self.total) if not self.state(task).ended]
        for task in unfinished:
            self._move(task, TaskState.CANCELLED)
        return unfinished

    def retry(self) -> list[int]:
        """Put failed and cancelled tasks back, with fresh retries; returns their numbers."""
        again = [
            task
            for task in range(self.total)
            if self.state(task) in (TaskState.FAILED, TaskState.CANCELLED) and task not in self.live
        ]
        for task in again:
            self.charged.pop(task, None)
            self.put_back(task, first=False)
        return again

    def fits(self, processors: int, memory: int) -> bool:
        """Whether one of its tasks fits into so many processors and bytes."""
        return self.spec.cpus <= processors and (self.spec.memory or 0) <= memory

    def _move(self, task: int, state: TaskState) -> None:
        old = self.state(task)
        if state not in TASK_TRANSITIONS[old]:
            raise ValueError(f"bag {self.id}, task {task}: {old.value} does not become {state.value}")
        self._set(task, state)

    def _set(self, task: int, state: TaskState) -> None:
        self._counts[self.state(task)] -= 1
        self._counts[state] += 1
        self._states[task] = _CODES[state]


def _discard(attempts: dict[int, set[int]], task: int, attempt: int) -> None:
    found = attempts.get(task)
    if found is not None:
        found.discard(attempt)
        if not found:
            del attempts[task]
