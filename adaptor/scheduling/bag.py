"""One bag in memory: which of its tasks wait, which tasks workers hold, which tasks have ended.

A waiting task costs a few bytes of memory: its command stays in the journal until a worker gets the task.
"""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Iterable

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.model import TASK_TRANSITIONS, TaskState
from adaptor.scheduling.donation_facts import NEVER_PREEMPTED, Preempted
from adaptor.scheduling.losses import Losses

_CODES = {state: code for code, state in enumerate(TaskState)}
_STATES = list(TaskState)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a bag that the journal keeps."""

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
        """Tasks that wait, but for the suspects."""
        self.suspects: deque[int] = deque()
        """Suspects that wait (see `losses`): they run after all others."""
        self.losses = Losses(spec.max_lost)
        """By unfinished task: its attempts that ran when their workers died."""
        self.live: dict[int, set[int]] = {}
        """By task: the attempts that workers hold."""
        self.adrift: dict[int, set[int]] = {}
        """By task: the attempts that the broker gave up but whose worker may still report a result."""
        self.charged: dict[int, int] = {}
        """By task: its own failures."""
        self.preempted: dict[int, Preempted] = {}
        """By unfinished task: its runs that ended because the donated node was taken."""
        self.retried = 0
        """Failed attempts that caused a retry."""
        self.runtime = 0.0
        """The sum of the runtimes of done tasks, seconds."""
        self.squares = 0.0
        """The sum of the squared runtimes."""
        self.first_done: float | None = None
        self._states = bytearray(total)
        self._attempts = array("I", bytes(array("I").itemsize * total))
        self._counts = dict.fromkeys(TaskState, 0)
        self._counts[TaskState.WAITING] = total

    def fill(self) -> None:
        """Queue all tasks (of a new bag)."""
        self.waiting.extend(self._in_order(range(self.total)))

    def put_in_order(self) -> None:
        """Queue the waiting tasks in the order of the bag, which is the same after each restart."""
        self.waiting = deque(self._in_order(self.waiting))

    def _in_order(self, tasks: Iterable[int]) -> Iterable[int]:
        if self.spec.order != "random":
            return tasks
        places = list(range(self.total))
        random.Random(self.id).shuffle(places)  # noqa: S311 (a sample, no secret)
        return sorted(tasks, key=places.__getitem__)

    def restore(self, task: int, state: TaskState, attempts: int, charged: int) -> None:
        """Set one task's state from the journal; call it in the order in which the tasks wait."""
        self._set(task, state)
        self._attempts[task] = attempts
        if charged:
            self.charged[task] = charged
        if state is TaskState.WAITING:
            self._line(task).append(task)

    def has(self, task: int) -> bool:
        """Whether there is such a task; a worker may speak of others."""
        return 0 <= task < self.total

    def state(self, task: int) -> TaskState:
        return _STATES[self._states[task]]

    def attempts(self, task: int) -> int:
        """The number of attempts of the task so far."""
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
        """Lease a waiting task (already off the queue) or a replica; returns the new attempt's number."""
        if self.state(task) is TaskState.WAITING:
            self._move(task, TaskState.LEASED)
        self._attempts[task] += 1
        attempt = self._attempts[task]
        self.live.setdefault(task, set()).add(attempt)
        return attempt

    def revive(self, task: int, attempt: int) -> None:
        """Count an attempt as live again: the broker gave it up, but it still runs."""
        if self.state(task) is TaskState.WAITING:
            self._line(task).remove(task)
            self._move(task, TaskState.LEASED)
        self.excuse(task, attempt)
        _discard(self.adrift, task, attempt)
        self.live.setdefault(task, set()).add(attempt)

    def expects(self, task: int, attempt: int) -> bool:
        """True until the end of this attempt was processed; a repeated report is not expected."""
        return attempt in self.live.get(task, ()) or attempt in self.adrift.get(task, ())

    def release(self, task: int, attempt: int) -> None:
        """Forget an attempt that has ended."""
        _discard(self.live, task, attempt)
        _discard(self.adrift, task, attempt)

    def set_adrift(self, task: int, attempt: int) -> None:
        """Give an attempt up; its worker may still report a result."""
        _discard(self.live, task, attempt)
        self.adrift.setdefault(task, set()).add(attempt)

    def take(self, position: int) -> int:
        """Take the task at this position off the queue."""
        task = self.waiting[position]
        del self.waiting[position]
        return task

    def put_back(self, task: int, *, first: bool) -> None:
        """Queue a task without live attempts again, at the head or at the end; suspects always at the end."""
        self._move(task, TaskState.WAITING)
        if first and task not in self.losses:
            self.waiting.appendleft(task)
        else:
            self._line(task).append(task)

    def suspect(self, task: int, attempt: int) -> None:
        """Count an attempt that ran when its worker died."""
        if self.state(task) is TaskState.WAITING:
            self._line(task).remove(task)
            self.suspects.append(task)
        self.losses.add(task, attempt)

    def excuse(self, task: int, attempt: int) -> None:
        """Count it no longer. A waiting task that was a suspect because of it alone is the next to run."""
        waits = task in self.losses and self.state(task) is TaskState.WAITING
        self.losses.excuse(task, attempt)
        if waits and task not in self.losses:
            self.suspects.remove(task)
            self.waiting.appendleft(task)

    def charge(self, task: int) -> bool:
        """Count a failure of the task itself; returns True if it may run again."""
        self.charged[task] = self.charged.get(task, 0) + 1
        again = self.charged[task] <= self.spec.retries
        self.retried += again
        return again

    def preempted_of(self, task: int) -> Preempted:
        return self.preempted.get(task, NEVER_PREEMPTED)

    def preempt(self, task: int, ran: float) -> None:
        """Count a run of `ran` seconds that ended because the donated node was taken."""
        self.preempted[task] = self.preempted_of(task).again(ran)

    def credit(self, wall: float, at: float) -> None:
        """Count a result."""
        self.runtime += wall
        self.squares += wall * wall
        self.first_done = at if self.first_done is None else min(at, self.first_done)

    def end(self, task: int, state: TaskState) -> set[int]:
        """Set the task's final state; returns its other live attempts, which are now useless."""
        if self.state(task) is TaskState.WAITING:
            self._line(task).remove(task)
        self._move(task, state)
        self.preempted.pop(task, None)
        if state is TaskState.DONE:
            self.losses.forget(task)
        others = self.live.pop(task, set())
        for attempt in others:
            self.set_adrift(task, attempt)
        return others

    def cancel(self) -> list[int]:
        """Cancel all unfinished tasks; returns their numbers. Live attempts stay until released."""
        self.waiting.clear()
        self.suspects.clear()
        unfinished = [task for task in range(self.total) if not self.state(task).ended]
        for task in unfinished:
            self._move(task, TaskState.CANCELLED)
        return unfinished

    def retry(self) -> list[int]:
        """Queue failed and cancelled tasks again, with all their retries; returns their numbers."""
        again = [
            task
            for task in range(self.total)
            if self.state(task) in (TaskState.FAILED, TaskState.CANCELLED) and task not in self.live
        ]
        for task in again:
            self.charged.pop(task, None)
            self.losses.forget(task)
            self.put_back(task, first=False)
        return again

    def fits(self, processors: int, memory: int) -> bool:
        """True if one task fits into these processors and bytes of memory."""
        return self.spec.cpus <= processors and (self.spec.memory or 0) <= memory

    def _line(self, task: int) -> deque[int]:
        """Where the task stands while it waits."""
        return self.suspects if task in self.losses else self.waiting

    def _move(self, task: int, state: TaskState) -> None:
        old = self.state(task)
        if state not in TASK_TRANSITIONS[old]:
            raise ValueError(f"bag {self.id}, task {task}: {old.value} cannot become {state.value}")
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
