"""The tasks of one bag on lent processors and in the pilots of formal requests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from adaptor.crafting.learning import RuntimeLearner
from adaptor.crafting.situation import Demand
from adaptor.donation.fitting import least_probability
from adaptor.donation.situation import Allocation, DonationRules
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.choice import numbers, to_lend
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.kernels import NEVER, Array


class Sharing:
    """A worker per processor that is ours pulls the next task which, by the estimate, fits.

    In a pilot it must end before the pilot does; on a lent processor before that is taken, with the
    probability that the rules want. What was preempted goes back to the head of the queue.
    """

    def __init__(
        self,
        place: Processors,
        runtimes: Array,
        learner: RuntimeLearner,
        *,
        allocation: Allocation,
        rules: DonationRules,
        possible: float,
    ) -> None:
        """`runtimes` are whole seconds, `possible` is the longest task that a request can hold."""
        self.total = len(runtimes)
        self.done = 0
        self._place, self._learner, self._rules = place, learner, rules
        self._learned = False
        self._probability = least_probability(allocation, rules)
        self._level = -math.log(self._probability)
        self._known = place.learner.hazard
        self._hazard = numbers(self._known)
        self._s = np.zeros(k.SCALARS, np.int64)
        self._s[[k.POSSIBLE, k.PATIENCE]] = min(possible, NEVER), rules.patience
        self._s[k.NO_OTHER_PLACE] = allocation == "transparent"
        self._tasks = np.zeros((4, self.total), np.int64)
        self._tasks[k.RUNTIME] = runtimes
        self._queue = np.zeros((2, self.total), np.int64)
        self._over = np.zeros(self.total, np.int64)
        self._estimate()

    @property
    def last_end(self) -> int:
        return int(self._s[k.LAST])

    @property
    def waiting(self) -> int:
        """Tasks that nobody has."""
        s = self._s
        return int(self.total - s[k.FRESH] + s[k.BACKS] + s[k.HELDS])

    @property
    def lent(self) -> int:
        return int((self._place.lot[k.LENT] >= 0).sum())

    @property
    def some_unlent(self) -> bool:
        """Whether there are idle processors that are not lent."""
        lot = self._place.lot
        return bool(((lot[k.OWNER] < 0) & (lot[k.LENT] < 0)).any())

    def figures(self, now: int) -> dict[str, int]:
        """Processor-seconds lent so far, of use and lost, and lent processors taken back."""
        lent = self._place.lot[k.LENT]
        s = self._s
        return {
            "lent": int(s[k.LENT_TIME] + (now - lent[lent >= 0]).sum()),
            "donated": int(s[k.DONATED]),
            "lost": int(s[k.LOST]),
            "reclaims": int(s[k.RECLAIMS]),
        }

    def demand(self) -> Demand:
        """What the planner is told: every waiting task may go into a pilot."""
        s = self._s
        again = {*self._queue[k.BACK, : s[k.BACKS]].tolist(), *self._queue[k.HELD, : s[k.HELDS]].tolist()}
        # What ran in vain for so long needs more, in a pilot too.
        estimates = [max(self._learner.estimate_of(task), float(self._tasks[k.RAN, task])) for task in again]
        if s[k.FRESH] < self.total or not again:
            estimates.append(self._learner.estimate)
        lot = self._place.lot
        return Demand(
            waiting=self.waiting,
            running=int((lot[k.TASK] >= 0).sum()),
            runtime=max(estimates),
            shortest=min(estimates),
        )

    def start(self, job: int, deadline: int | None) -> None:
        """A job starts, which takes lent processors back; `deadline` is given where it is a pilot."""
        local = deadline is None
        self._place.learn(job, local=local)
        self._place.seat(
            job, self._s, self._tasks, self._queue, deadline=-1 if deadline is None else deadline
        )

    def end(self, job: int) -> None:
        """A job has ended; tasks that ran in it are cut, learned from and put back."""
        lot, s, now = self._place.lot, self._s, self._place.cluster.now
        for p in np.flatnonzero((lot[k.OWNER] == job) & (lot[k.TASK] >= 0)).tolist():
            task = int(lot[k.TASK, p])
            self._learner.cut(task, float(now - lot[k.START, p]))
            self._learned = True
            self._tasks[k.OWN, task] = math.ceil(self._learner.needed_by(task))
            self._queue[k.BACK, s[k.BACKS]] = task
            s[k.BACKS] += 1
            lot[k.TASK, p], lot[k.END, p] = -1, NEVER
        self._place.vacate(job)
        self._estimate()

    def lend(self) -> None:
        """Lend what the donation would lend now, and start tasks on all idle processors of ours."""
        place, s = self._place, self._s
        if place.learner.hazard is not self._known:
            self._known = place.learner.hazard
            self._hazard = numbers(self._known)
        now = place.cluster.now
        waiting = self.waiting if s[k.NO_OTHER_PLACE] else self.waiting - int(s[k.HELDS])
        if waiting and self._probability <= 1:
            place.plan_ahead()
            useful, needs = self._rules.useful_time, self._least_need()
            lent = to_lend(place.lot, now, self._hazard, self._probability, useful, waiting, needs)
            place.lot[k.LENT, lent] = now
        self._call(k.fill, now)

    def run(self, until: int) -> int:
        """As `kernels.run`."""
        s, lot = self._s, self._place.lot
        return int(k.run(s, lot, self._tasks, self._queue, self._over, self._hazard, self._level, until))

    def learn(self) -> bool:
        """Learn from the tasks that are done; whether that has changed the estimate."""
        s = self._s
        count = int(s[k.COUNT])
        if not count:
            return False
        self.done += count
        self._learned = True
        self._learner.finished_together(count, *map(float, s[[k.TOTAL, k.SQUARES, k.LONGEST]].tolist()))
        for task in self._over[: s[k.OVER]].tolist():
            self._learner.forget(task)
        s[[k.COUNT, k.TOTAL, k.SQUARES, k.OVER]] = 0
        return self._estimate()

    def busy(self, job: int) -> bool:
        """Whether a task runs in the pilot."""
        lot = self._place.lot
        return bool(((lot[k.OWNER] == job) & (lot[k.TASK] >= 0)).any())

    def fill(self) -> None:
        self._call(k.fill, self._place.cluster.now)

    def _call(self, kernel: Callable[..., None], now: int) -> None:
        kernel(self._s, self._place.lot, self._tasks, self._queue, self._hazard, self._level, now)

    def _least_need(self) -> int:
        """Estimated seconds of the shortest waiting task that may run on lent processors."""
        s, needs = self._s, np.maximum(self._tasks[k.OWN], self._tasks[k.RAN])
        again = [self._queue[k.BACK, : s[k.BACKS]]]
        if s[k.NO_OTHER_PLACE]:
            again.append(self._queue[k.HELD, : s[k.HELDS]])
        least = 0 if s[k.FRESH] < self.total else int(needs[np.concatenate(again)].min(initial=NEVER))
        return max(int(s[k.KNOWN]), least)

    def _estimate(self) -> bool:
        estimate = math.ceil(self._learner.estimate)
        changed = estimate != self._s[k.ESTIMATE]
        self._s[k.ESTIMATE] = estimate
        self._s[k.KNOWN] = estimate if self._learned else 0
        return bool(changed)
