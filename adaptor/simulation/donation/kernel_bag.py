"""The tasks of one bag in arrays, for the compiled kernels."""

from __future__ import annotations

import math

import numpy as np

from adaptor.crafting.situation import Demand
from adaptor.donation.fitting import held, least_probability, release_probability
from adaptor.donation.situation import Allocation, DonationRules
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.scheduling.settling import NEAR_THE_END
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.choice import in_numbers, numbers, to_use
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.grid_job import GridTerms
from adaptor.simulation.kernels import NEVER, Array


def follows_core(terms: GridTerms, rules: DonationRules) -> bool:
    """Whether the kernels know all rules of the core that matter here; see `choice.in_numbers`.

    Times are whole seconds in them, and so must be what estimates are made from.
    """
    whole_seconds = terms.initial_tr.is_integer() and terms.possible.is_integer()
    return in_numbers(rules) and whole_seconds and not terms.traits.even_odds


class KernelBag:
    """A `DonationBag` on the kernels: the same as `CoreBag`, much faster."""

    def __init__(
        self,
        place: Processors[Simulation],
        runtimes: Array,
        terms: GridTerms,
        rules: DonationRules,
        allocation: Allocation,
    ) -> None:
        """Raises ValueError: the kernels do not know these terms or rules."""
        if not follows_core(terms, rules):
            raise ValueError("max_nodes, reserve_nodes, hours, even odds and parts of seconds need the core")
        self.total = len(runtimes)
        self.failed = 0
        self._finished = self._lost = self._reclaims = 0
        self._place, self._rules, self._max_tr = place, rules, terms.rules.limits.max_tr
        self._learner = RuntimeLearner(
            initial=terms.initial_tr, factor=terms.growth_factor, longest=terms.possible
        )
        least = least_probability(allocation, rules)
        self._level = math.inf if least <= 0 else -math.log(least)
        self._levels = (self._level, -math.log(rules.last_fit))
        self._known = place.learner.hazard
        self._hazard = numbers(self._known)
        self._s = np.zeros(k.SCALARS, np.int64)
        self._s[k.POSSIBLE] = terms.possible
        self._s[k.FORMAL] = -1
        self._s[k.NO_OTHER_PLACE] = allocation == "transparent"
        self._tasks = np.zeros((4, self.total), np.int64)
        self._tasks[k.RUNTIME] = runtimes
        self._queue = np.zeros((2, self.total), np.int64)
        self._over = np.zeros(self.total, np.int64)
        self._estimate()

    @property
    def done(self) -> int:
        return self._finished + self.failed

    @property
    def last_end(self) -> int:
        return int(self._s[k.LAST])

    @property
    def waiting(self) -> int:
        s = self._s
        return int(self.total - s[k.FRESH] + s[k.BACKS] + s[k.HELDS])

    def figures(self, now: int) -> dict[str, int]:
        return {
            "used": int(self._s[k.USED_TIME]) + self._place.used_until(now),
            "donated": int(self._s[k.DONATED]),
            "lost": self._lost,
            "reclaims": self._reclaims,
        }

    def demand(self) -> Demand:
        s = self._s
        again = {*self._queue[k.BACK, : s[k.BACKS]].tolist(), *self._queue[k.HELD, : s[k.HELDS]].tolist()}
        # What ran in vain for so long needs more, in a pilot too.
        estimates = [max(self._learner.estimate_of(task), float(self._tasks[k.RAN, task])) for task in again]
        if s[k.FRESH] < self.total or not again:
            estimates.append(self._learner.estimate)
        return Demand(
            waiting=self.waiting,
            running=int((self._place.lot[k.TASK] >= 0).sum()),
            runtime=max(estimates),
            shortest=min(estimates),
        )

    def expire(self) -> None:
        lot, now = self._place.lot, self._place.cluster.now
        for p in np.flatnonzero((lot[k.USED] >= 0) & (lot[k.UNTIL] <= now)).tolist():
            self._leave(p, preempted=False)
        self._estimate()

    def start(self, job: int, deadline: int | None) -> None:
        place, lot = self._place, self._place.lot
        place.learn(job, local=deadline is None)
        for p in place.places_of(job).tolist():
            if lot[k.USED, p] >= 0:
                self._reclaims += 1
                self._leave(p, preempted=True)
        place.seat(job, deadline)
        self._estimate()

    def end(self, job: int) -> None:
        lot = self._place.lot
        for p in np.flatnonzero((lot[k.OWNER] == job) & (lot[k.TASK] >= 0)).tolist():
            self._cut(p)
        self._place.vacate(job)
        self._estimate()

    def expect(self, start: int | None) -> None:
        self._s[k.FORMAL] = -1 if start is None else start

    def use_nodes(self) -> None:
        place, s = self._place, self._s
        if place.learner.hazard is not self._known:
            self._known = place.learner.hazard
            self._hazard = numbers(self._known)
        now = place.cluster.now
        waiting, held = self.waiting, 0
        if not s[k.NO_OTHER_PLACE]:
            waiting, held = waiting - int(s[k.HELDS]), int(s[k.HELDS])
        released = held > 0 and s[k.FORMAL] >= 0
        if waiting or released:
            place.plan_ahead()
        if waiting:
            self._use(self._level, waiting, self._least_need())
        if released and s[k.FORMAL] > now:
            need = self._least_need_of_held()
            least = release_probability(need, float(s[k.FORMAL] - now), self._rules)
            self._use(-math.log(least), held, need)
        self.fill()

    def _use(self, level: float, waiting: int, needs: float) -> None:
        """Take processors into use for so many tasks of one kind."""
        place, now = self._place, self._place.cluster.now
        chosen = to_use(place.lot, now, self._hazard, level, self._rules.useful_time, waiting, needs)
        planned = NEVER if self._rules.choose == "all" else place.lot[k.PLANNED, chosen]
        place.lot[k.USED, chosen] = now
        place.lot[k.UNTIL, chosen] = np.minimum(planned, now + self._max_tr)

    def fill(self) -> None:
        lot, now = self._place.lot, self._place.cluster.now
        k.fill(self._s, lot, self._tasks, self._queue, self._hazard, self._levels, now)

    def run(self, until: int) -> int:
        s, lot = self._s, self._place.lot
        return int(k.run(s, lot, self._tasks, self._queue, self._over, self._hazard, self._levels, until))

    def learn(self) -> bool:
        s = self._s
        count = int(s[k.COUNT])
        if not count:
            return False
        self._finished += count
        self._learner.finished_together(count, *map(float, s[[k.TOTAL, k.SQUARES, k.LONGEST]].tolist()))
        for task in self._over[: s[k.OVER]].tolist():
            self._learner.forget(task)
        s[[k.COUNT, k.TOTAL, k.SQUARES, k.OVER]] = 0
        return self._estimate()

    def _leave(self, p: int, *, preempted: bool) -> None:
        """Leave a donated processor; what runs there waits again.

        As `adaptor.scheduling.settling` judges it, an end shortly before the pilot's own is that one.
        """
        lot, s, now = self._place.lot, self._s, self._place.cluster.now
        if lot[k.TASK, p] >= 0:
            self._lost += int(now - lot[k.START, p])
            if preempted and lot[k.UNTIL, p] - now >= NEAR_THE_END:
                self._preempt(p)
            else:
                self._cut(p)
        s[k.USED_TIME] += now - lot[k.USED, p]
        lot[k.USED, p] = -1

    def _preempt(self, p: int) -> None:
        task, ran = self._stop(p)
        self._tasks[k.RAN, task] = max(self._tasks[k.RAN, task], ran)
        self._tasks[k.PREEMPTED, task] += 1
        self._put_back(task)

    def _cut(self, p: int) -> None:
        """The pilot's time is up: the task needs more time, or more than there is."""
        task, ran = self._stop(p)
        self._learner.cut(task, float(ran))
        if self._learner.hopeless(task):
            self.failed += 1
            self._learner.forget(task)
            self._s[k.LAST] = self._place.cluster.now
        else:
            self._tasks[k.OWN, task] = math.ceil(self._learner.needed_by(task))
            self._put_back(task)

    def _stop(self, p: int) -> tuple[int, int]:
        """The task that ran on a processor, and for how long."""
        lot = self._place.lot
        task, ran = int(lot[k.TASK, p]), int(self._place.cluster.now - lot[k.START, p])
        lot[k.TASK, p], lot[k.END, p] = -1, NEVER
        return task, ran

    def _put_back(self, task: int) -> None:
        s = self._s
        row = k.HELD if held(int(self._tasks[k.PREEMPTED, task]), self._rules) else k.BACK
        self._queue[row, s[k.BACKS + row]] = task
        s[k.BACKS + row] += 1

    def _least_need(self) -> int:
        """Estimated seconds of the shortest waiting task that may run on donated processors."""
        s, needs = self._s, np.maximum(self._tasks[k.OWN], self._tasks[k.RAN])
        again = [self._queue[k.BACK, : s[k.BACKS]]]
        if s[k.NO_OTHER_PLACE]:
            again.append(self._queue[k.HELD, : s[k.HELDS]])
        least = 0 if s[k.FRESH] < self.total else int(needs[np.concatenate(again)].min(initial=NEVER))
        return max(int(s[k.KNOWN]), least)

    def _least_need_of_held(self) -> float:
        s, held = self._s, self._queue[k.HELD, : self._s[k.HELDS]]
        return float(max(s[k.KNOWN], np.maximum(self._tasks[k.OWN], self._tasks[k.RAN])[held].min()))

    def _estimate(self) -> bool:
        estimate = math.ceil(self._learner.estimate)
        changed = estimate != self._s[k.ESTIMATE]
        learned = self._learner.mean is not None or bool(self._learner.cut_tasks)
        self._s[k.ESTIMATE] = estimate
        self._s[k.KNOWN] = estimate if learned else 0
        return bool(changed)
