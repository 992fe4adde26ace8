"""One bag in memory: which of its tasks wait, which tasks workers hold, which tasks have ended.

A waiting task costs a few bytes of memory: its command stays in the journal until a worker gets the task.
"""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.model import TASK_TRANSITIONS, TaskState
from adaptor.resources import OwnNeeds
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.dependencies import Dependencies, Links
from adaptor.scheduling.donation_facts import NEVER_PREEMPTED, Preempted
from adaptor.scheduling.lines import Line, Lines
from adaptor.scheduling.losses import Losses
from adaptor.scheduling.refilling import Refilling
from adaptor.scheduling.task_sizes import TaskSizes

_CODES = {state: code for code, state in enumerate(TaskState)}
_STATES = list(TaskState)


def assumed_at(spec: BagSpec, earlier: Mapping[str, EarlierTasks], site: str) -> float | None:
    """Seconds that a task is taken to need at a site before any has finished; None: nothing is known.

    Where its user has said nothing: what 95 % of the tasks of earlier bags of its kinds took. With more,
    requests wait longer (`python -m lab.campaign.known_kinds`); a task that is cut gets more time.
    """
    if spec.time is None and site in earlier:
        return earlier[site].high
    return spec.time


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
    blocked: int = 0
    open: bool = False
    events: int = 0
    """The number of its last event."""

    @property
    def ended(self) -> bool:
        """Whether all its tasks have ended and no task can join them."""
        return not (self.open or self.waiting or self.leased or self.blocked)


class Guard(msgspec.Struct, frozen=True):
    """Pause of a bag, and state of its guard rails; the journal keeps it."""

    paused: str = ""
    """Why, in one sentence; empty: it is not."""
    itself: bool = False
    """Whether a guard rail has paused it, and not its user."""
    shown: tuple[int, int] | None = None
    """The task and the attempt whose output tells more of the pause."""
    canary: bool = True
    """Whether its first attempts are watched."""
    excused: int = 0
    """Failed tasks that do not count towards `max-fails` any more."""
    until: float | None = None
    """Epoch seconds at which a paused bag goes on by itself; None: never."""


class Bag:
    """The tasks 0 … total − 1 of one bag and their states."""

    def __init__(
        self, id: int, spec: BagSpec, total: int, needs: Mapping[int, OwnNeeds] | None = None
    ) -> None:
        """`needs`: by task that has needs of its own. Raises ValueError: they contradict each other."""
        self.id = id
        self.spec = spec
        self.task = spec.task  # resources of each of its tasks that has no needs of its own
        self.total = total
        self.earlier: Mapping[str, EarlierTasks] = {}
        """Runtimes of earlier bags of the same kinds, by site."""
        self.open = False  # whether tasks may still be appended
        self._refilling = Refilling(most=total)
        self.held_back = False
        """Whether nothing of it starts while its many tasks are cancelled one part after another."""
        self.events = 0  # the number of its last event: tasks that ended or were put back, and its close
        self.dependencies = Dependencies()
        self.awaits: set[int] = set()  # bags that must end before any of its tasks starts
        self.spoilers: dict[int, TaskState] = {}
        """Bags that have ended so that none of its tasks can run, unless they are retried; how they ended."""
        self.sizes = TaskSizes(spec.task, needs)
        self.lines = Lines(self.sizes, total)  # tasks that wait, except the suspects, by class of sizes
        self.suspects: deque[int] = deque()  # suspects that wait (see `losses`): they run after all others
        self.losses = Losses(spec.max_lost)
        """Attempts of each unfinished task that ran when their workers died."""
        self.live: dict[int, set[int]] = {}  # by task: the attempts that workers hold
        self.adrift: dict[int, set[int]] = {}
        """Attempts by task that the broker gave up but whose worker may still report a result."""
        self.charged: dict[int, int] = {}  # by task: its own failures
        self.preempted: dict[int, Preempted] = {}
        """Runs of each unfinished task that ended because the donated node was taken."""
        self.guard = Guard()
        self.failures = 0  # the sum of `charged`
        self.alike = 0  # the last failures, one after the other, that were all of the same kind
        self._kind: object = None
        self.progress: dict[int, float] = {}
        """Seconds that the attempts of each unfinished requeued task have worked."""
        self.hasty: dict[int, int] = {}
        """Number of requeues in a row within `QUICK` seconds each, by task."""
        self.retried = 0  # failed attempts that caused a retry
        self.runtime = 0.0  # the sum of the runtimes of done tasks, seconds
        self.squares = 0.0  # the sum of the squared runtimes
        self.first_done: float | None = None
        self._states = bytearray(total)
        self._attempts = array("I", bytes(array("I").itemsize * total))
        self._counts = dict.fromkeys(TaskState, 0)
        self._counts[TaskState.WAITING] = total

    def assumed_at(self, site: str) -> float | None:
        """Seconds that a task is taken to need at a site before any has finished; None: nothing is known."""
        return assumed_at(self.spec, self.earlier, site)

    @property
    def told(self) -> float | None:
        """Mean seconds of a task, as its user says of the bag or of each task; None: not said of all."""
        return self.sizes.mean_time(self.total, self.spec.time)

    @property
    def tries_first(self) -> bool:
        """Whether its first tasks have yet to succeed before more start (`BagSpec.first_tasks`)."""
        first = self.spec.first_tasks
        return bool(first) and self.guard.canary and self.count(TaskState.DONE) < first

    @property
    def max_running(self) -> int | None:
        """Number of its tasks that may run at the same time now; None: no limit."""
        most = self.spec.max_running
        if not self.tries_first:
            return most
        left = self.spec.first_tasks - self.count(TaskState.DONE)
        return left if most is None else min(most, left)

    @property
    def waiting(self) -> Iterator[int]:
        """Tasks that wait, except the suspects; one class after another."""
        return self.lines.waiting

    def fill(self) -> None:
        """Queue all tasks of a bag that wait, of which none is queued yet; the order is always the same."""
        waiting = self._in_state(TaskState.WAITING)
        if self.losses:
            waiting = [*waiting]
            self.suspects.extend(task for task in waiting if task in self.losses)
            waiting = (task for task in waiting if task not in self.losses)
        if self.spec.order == "random":
            places = array("I", range(self.total))
            random.Random(self.id).shuffle(places)  # noqa: S311 (a sample, no secret)
            waiting = sorted(waiting, key=places.__getitem__)
        self.lines.extend(waiting)

    def _in_state(self, state: TaskState) -> Iterable[int]:
        chosen = bytes(code == _CODES[state] for code in range(256))
        return compress(range(self.total), self._states.translate(chosen))

    def append(
        self,
        count: int,
        links: Mapping[int, Links] | None = None,
        needs: Mapping[int, OwnNeeds] | None = None,
    ) -> list[int]:
        """Add tasks, behind those that wait; returns those that are blocked.

        They are: where the bag is gated, and where they have links. A random order is one among the
        added tasks, until a restart puts all waiting tasks in order.

        Raises ValueError: the needs of a task contradict each other; nothing is added.
        """
        self.sizes.add(needs or {})
        self._refilling.append(count, self.unfinished)
        links = links or {}
        added = range(self.total, self.total + count)
        self.total += count
        self._states.extend(bytes(count))
        self._attempts.extend(array("I", bytes(array("I").itemsize * count)))
        self._counts[TaskState.WAITING] += count
        for task, link in links.items():
            self.dependencies.add(task, link)
        blocked = list(added) if self.gated else sorted(task for task, link in links.items() if link)
        for task in blocked:
            self._set(task, TaskState.BLOCKED)
        tasks: Sequence[int] = added
        if blocked:
            tasks = [task for task in added if self.state(task) is TaskState.WAITING]
        if self.spec.order == "random":
            tasks = list(tasks)
            random.Random(f"{self.id}:{added.start}").shuffle(tasks)  # noqa: S311 (a sample, no secret)
        self.lines.extend(tasks)
        return blocked

    @property
    def gated(self) -> bool:
        """Whether new tasks of it are blocked, because of the bags after which it runs."""
        return bool(self.awaits or self.spoilers)

    @property
    def blocked(self) -> list[int]:
        """The tasks that wait for others, or for bags."""
        return [*self._in_state(TaskState.BLOCKED)] if self._counts[TaskState.BLOCKED] else []

    def unblock(self, task: int) -> None:
        """Queue a task that waits for nothing any more."""
        self.dependencies.forget(task)
        self._move(task, TaskState.WAITING)
        self._line(task).append(task)

    def close(self) -> None:
        """Take no more tasks."""
        self.open = False
        self.events += 1

    def waits_in(self, line: Line) -> int:
        """Tasks of a class that wait, suspects included."""
        if len(self.lines) == 1:
            return self.count(TaskState.WAITING)
        return len(line.waiting) + sum(self.lines.of(task) is line for task in self.suspects)

    def startable_in(self, line: Line) -> int:
        """Number of tasks in this line that may be started; 0 while the bag is paused."""
        return 0 if self.guard.paused else self.waits_in(line)

    def restore(self, tasks: Iterable[tuple[int, str, int, int]]) -> None:
        """Set what the journal says of tasks, before `fill`.

        Of each: its number, the word for its state, its attempts, and its failures that were charged.
        """
        codes = {state.value: code for state, code in _CODES.items()}
        for task, state, attempts, charged in tasks:
            self._states[task] = codes[state]
            self._attempts[task] = attempts
            if charged:
                self.charged[task] = charged
                self.failures += charged
        self._counts = {state: self._states.count(code) for state, code in _CODES.items()}

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
        return Tally(
            **counts,
            retried=self.retried,
            runtime=self.runtime,
            first_done=self.first_done,
            open=self.open,
            events=self.events,
        )

    @property
    def active(self) -> bool:
        """Whether any of its tasks waits for a worker, or is held by one."""
        return bool(self._counts[TaskState.WAITING] or self._counts[TaskState.LEASED])

    @property
    def unfinished(self) -> int:
        """Tasks that wait for a worker, or for others, or are held by a worker."""
        states = (TaskState.WAITING, TaskState.LEASED, TaskState.BLOCKED)
        return sum(self._counts[state] for state in states)

    @property
    def expected(self) -> int:
        """Tasks that its program is expected to append."""
        return self._refilling.expected(self.unfinished) if self.open else 0

    @property
    def ended(self) -> bool:
        """Whether all its tasks have ended and no task can join them."""
        return not (self.open or self.active or self._counts[TaskState.BLOCKED])

    @property
    def at_work(self) -> bool:
        """True if a task of it runs, or may be started."""
        return bool(self._counts[TaskState.LEASED] or self.startable)

    @property
    def startable(self) -> int:
        """Waiting tasks that may be started; none while the bag is paused."""
        return 0 if self.guard.paused else self._counts[TaskState.WAITING]

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

    def put_back(self, task: int, *, first: bool) -> None:
        """Queue a task without live attempts again, at the head or at the end; suspects always at the end."""
        self._move(task, TaskState.WAITING)
        if first and task not in self.losses:
            self.lines.of(task).appendleft(task)
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
            self.lines.of(task).appendleft(task)

    def charge(self, task: int, *, in_vain: bool = False) -> bool:
        """Count a failure of the task itself; returns True if it may run again.

        `in_vain`: it would fail again, however often it is tried.
        """
        self.charged[task] = self.charged.get(task, 0) + 1
        self.failures += 1
        again = not in_vain and self.charged[task] <= self.spec.retries
        self.retried += again
        return again

    def note_alike(self, kind: object | None) -> None:
        """Count a failure of this kind; None: it is like no other."""
        self.alike = self.alike + 1 if kind is not None and kind == self._kind else int(kind is not None)
        self._kind = kind

    def preempted_of(self, task: int) -> Preempted:
        return self.preempted.get(task, NEVER_PREEMPTED)

    def preempt(self, task: int, ran: float) -> None:
        """Count a run of `ran` seconds that ended because the donated node was taken."""
        self.preempted[task] = self.preempted_of(task).again(ran)

    def credit(self, wall: float, at: float) -> None:
        """Count a result and its runtime."""
        self.runtime += wall
        self.squares += wall * wall
        self.first_done = at if self.first_done is None else min(at, self.first_done)

    def end(self, task: int, state: TaskState) -> set[int]:
        """Set the task's final state; returns its other live attempts, which are now useless."""
        if self.state(task) is TaskState.WAITING:
            self._line(task).remove(task)
        self.dependencies.forget(task)
        self._move(task, state)
        self.preempted.pop(task, None)
        self.progress.pop(task, None)
        self.hasty.pop(task, None)
        if state is TaskState.DONE:
            self.losses.forget(task)
        others = self.live.pop(task, set())
        for attempt in others:
            self.set_adrift(task, attempt)
        return others

    def cancel(self, tasks: Iterable[int] | None = None, *, enough: bool = False) -> list[int]:
        """Cancel unfinished tasks (None: all); returns their numbers. Live attempts stay until released.

        `enough`: they are done.
        """
        unfinished = self.not_ended(tasks)
        waiting = [task for task in unfinished if self.state(task) is TaskState.WAITING]
        self.lines.drop(task for task in waiting if task not in self.losses)
        for task in unfinished:
            self._move(task, TaskState.DONE if enough else TaskState.CANCELLED)
            self.progress.pop(task, None)
            self.hasty.pop(task, None)
        self.suspects = deque(task for task in self.suspects if not self.state(task).ended)
        return unfinished

    def not_ended(self, tasks: Iterable[int] | None = None) -> list[int]:
        """Numbers of the tasks among these (None: all) that wait or run."""
        return [task for task in self._known(tasks) if not self.state(task).ended]

    def _known(self, tasks: Iterable[int] | None) -> Iterable[int]:
        """Numbers of the tasks among these that the bag has, once each; None: all."""
        return range(self.total) if tasks is None else sorted({task for task in tasks if self.has(task)})

    def may_retry(self, tasks: Iterable[int] | None = None) -> list[int]:
        """Numbers of the tasks among these (None: all) that `retry` puts back."""
        again = [
            task
            for task in self._known(tasks)
            if self.state(task) in (TaskState.FAILED, TaskState.CANCELLED) and task not in self.live
        ]
        if self.dependencies:
            again = self.dependencies.may_run_again(again, self.state)
        return again

    def retry(self, tasks: Iterable[int] | None = None, needs: OwnNeeds | None = None) -> list[int]:
        """Queue failed and cancelled tasks (None: all) again, with all their retries; their numbers.

        Those that run after others which have not ended are blocked; those that run after others which failed
        and are not among them stay as they are. `needs`: what replaces theirs.

        Raises ValueError: the needs contradict other sizes of a task.
        """
        again = self.may_retry(tasks)
        if needs is not None:
            for size in {self.sizes.of(task) for task in again}:
                needs.over(size)
            for task in again:
                # What ran on several nodes cannot go on as a task on one.
                if self.sizes.of(task).nodes > 1:
                    self.adrift.pop(task, None)
                self.sizes.change(task, needs)
        self.alike = 0
        for task in again:
            self.failures -= self.charged.pop(task, 0)
            self.losses.forget(task)
        linked = self.awaits or self.dependencies
        for task in again:
            self._move(task, TaskState.BLOCKED if linked else TaskState.WAITING)
        if not linked:
            self.lines.extend(again)
            return again
        ready = [task for task in again if not (self.awaits or self.dependencies.waits(task, self.state))]
        for task in set(again).difference(ready):
            self.dependencies.watch(task, self.state)
        for task in ready:
            self.unblock(task)
        return again

    def change_needs(self, tasks: Iterable[int], needs: OwnNeeds) -> list[int]:
        """Replace what those of these tasks need that have not ended; their numbers.

        Attempts that run go on as they are, and the order of the waiting tasks stays.

        Raises ValueError: the needs contradict other sizes of a task.
        """
        chosen = self.not_ended(tasks)
        for size in {self.sizes.of(task) for task in chosen}:
            needs.over(size)
        among = set(chosen)
        waiting = [task for task in self.waiting if task in among]
        self.lines.drop(waiting)
        for task in chosen:
            self.sizes.change(task, needs)
        self.lines.extend(waiting)
        return chosen

    def _line(self, task: int) -> deque[int] | Line:
        """The queue in which the task stands while it waits."""
        return self.suspects if task in self.losses else self.lines.of(task)

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
    found = attempts.get(task, {attempt})
    found.discard(attempt)
    if not found:
        attempts.pop(task, None)
