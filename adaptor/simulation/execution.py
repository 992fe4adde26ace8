"""The tasks of one bag in the slots of running pilots: eager scheduling on the virtual clock."""

from __future__ import annotations

import math

import numpy as np

from adaptor.crafting.learning import RuntimeLearner
from adaptor.crafting.situation import Demand
from adaptor.simulation import task_kernels as k
from adaptor.simulation.kernels import NEVER, Array


class Execution:
    """Workers, one per processor, pull the tasks of a bag; what they see is learned.

    A slot that is free starts the next task which the learned estimate lets finish before its pilot's
    deadline; one that meets the deadline is cut, learned from and put back to the head of the queue.
    Tasks run as long in one place as in another, so no replicas are made: one could never be first.
    """

    def __init__(self, runtimes: Array, learner: RuntimeLearner, *, possible: float, width: int) -> None:
        """`runtimes` are whole seconds, `possible` is the longest task that a request can hold, `width`
        the most processors of a pilot."""
        tasks = len(runtimes)
        self.total = tasks
        self.done = 0
        self._learner = learner
        self._runtimes = runtimes
        self._scalars = np.zeros(k.SCALARS, np.int64)
        self._scalars[k.LEAST_BACK], self._scalars[k.POSSIBLE] = NEVER, math.floor(possible)
        self._own = np.zeros(tasks, np.int64)
        self._back, self._over = (np.zeros(tasks, np.int64) for _ in range(2))
        self._pilots = np.zeros((1, 4), np.int64)
        self._tasks, self._starts = np.full((1, width), -1, np.int64), np.zeros((1, width), np.int64)
        self._heap = np.zeros(width, np.int64)
        self._estimate()

    @property
    def last_end(self) -> int:
        """When the last of the tasks that are done ended."""
        return int(self._scalars[k.LAST])

    def demand(self) -> Demand:
        """What the planner is told, as the broker of the daemon tells it."""
        back, fresh = int(self._scalars[k.BACK]), self.total - int(self._scalars[k.FRESH])
        estimate = self._learner.estimate
        estimates = [self._learner.estimate_of(task) for task in set(self._back[:back].tolist())]
        if fresh or not back:
            estimates.append(estimate)
        return Demand(
            waiting=fresh + back,
            running=sum(pilot[k.BUSY] for pilot in self._pilots.tolist()),
            runtime=max(estimates),
            shortest=min(estimates),
        )

    def next_deadline(self) -> int:
        """The earliest deadline of a running pilot; NEVER where none runs."""
        deadlines = [pilot[k.DEADLINE] for pilot in self._pilots.tolist() if pilot[k.P]]
        return min(deadlines, default=NEVER)

    def add_pilot(self, processors: int, deadline: int) -> int:
        """A pilot has started; returns the row by which it is known."""
        free = np.flatnonzero(self._pilots[:, k.P] == 0)
        if not len(free):
            self._grow()
            return self.add_pilot(processors, deadline)
        row = int(free[0])
        self._pilots[row] = processors, deadline, 0, 0
        return row

    def remove_pilot(self, row: int, now: int) -> int:
        """A pilot has ended; what ran in it is cut, learned from and put back. Returns its done tasks."""
        places = np.flatnonzero(self._tasks[row] >= 0)
        done = int(self._pilots[row, k.DONE])
        tasks, ran = self._tasks[row, places].tolist(), (now - self._starts[row, places]).tolist()
        k.remove_pilot(self._scalars, self._pilots, self._tasks, self._heap, row)
        for task, seconds in zip(tasks, ran, strict=True):
            self._learner.cut(task, seconds)
            self._put_back(task)
        self._estimate()
        return done

    def idle_pilots(self) -> list[int]:
        """Rows of the running pilots that have no task."""
        rows = self._pilots.tolist()
        return [row for row, pilot in enumerate(rows) if pilot[k.P] and not pilot[k.BUSY]]

    def fill(self, now: int) -> None:
        """Start tasks in all idle slots."""
        k.fill(
            self._scalars, self._runtimes, self._own, self._back,
            self._pilots, self._tasks, self._starts, self._heap, now,
        )  # fmt: skip

    def run(self, until: int) -> int:
        """Let tasks end and others start up to and including `until`, at most the next deadline.

        Returns:
            When it stopped to have something learned (`learn`) or because a pilot has become idle; NEVER
            where it did not.
        """
        return k.run(
            self._scalars, self._runtimes, self._own, self._back, self._over,
            self._pilots, self._tasks, self._starts, self._heap, until,
        )  # fmt: skip

    def learn(self) -> bool:
        """Learn from the tasks that are done; whether that has changed the estimate."""
        s = self._scalars.tolist()
        if not s[k.COUNT]:
            return False
        self.done += s[k.COUNT]
        self._learner.finished_together(
            s[k.COUNT], float(s[k.TOTAL]), float(s[k.SQUARES]), float(s[k.LONGEST])
        )
        for task in self._over[: s[k.OVER]].tolist():
            self._learner.forget(task)
        for sum_until_now in (k.COUNT, k.TOTAL, k.SQUARES, k.OVER):
            self._scalars[sum_until_now] = 0
        return self._estimate()

    def save(self) -> list[Array]:
        """All that `run` changes."""
        parts = (self._scalars, self._pilots, self._tasks, self._starts)
        back, heap = self._back[: self._scalars[k.BACK]], self._heap[: self._scalars[k.HEAP]]
        return [part.copy() for part in (*parts, back, heap)]

    def restore(self, saved: list[Array]) -> None:
        self._scalars, self._pilots, self._tasks, self._starts, back, heap = saved
        self._back[: len(back)] = back
        self._heap[: len(heap)] = heap

    def _put_back(self, task: int) -> None:
        s = self._scalars
        own = math.ceil(self._learner.needed_by(task))
        self._own[task] = own
        self._back[s[k.BACK]] = task
        s[k.BACK] += 1
        s[k.LEAST_BACK] = min(int(s[k.LEAST_BACK]), own)

    def _estimate(self) -> bool:
        estimate = math.ceil(self._learner.estimate)
        changed = estimate != self._scalars[k.ESTIMATE]
        self._scalars[k.ESTIMATE] = estimate
        return bool(changed)

    def _grow(self) -> None:
        rows, width = self._tasks.shape
        if 2 * rows * width > k.MOST_SLOTS:
            raise ValueError(f"{2 * rows} running pilots of {width} processors are beyond this replay")
        self._pilots = np.concatenate([self._pilots, np.zeros_like(self._pilots)])
        self._tasks = np.concatenate([self._tasks, np.full_like(self._tasks, -1)])
        self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        self._heap = np.concatenate([self._heap, np.zeros_like(self._heap)])
