"""The tasks of one bag in the scheduling core itself: the `Broker` and the `decide` of the daemon.

For rules that the kernels do not know, and to hold the kernels against. Each processor that is ours has a
worker of its own; its messages take no time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from adaptor.bag_spec import BagSpec
from adaptor.crafting.situation import Demand
from adaptor.donation.deciding import decide
from adaptor.donation.hours import closes
from adaptor.donation.situation import (
    Allocation,
    DonatedUse,
    DonationRules,
    DonationState,
    LeaveNodes,
    NodeUse,
    NodeView,
    UseNodes,
)
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey, Ending, Hello, Leaving, Report, Result
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.orders import DraftOrders
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.core_execution import site_terms
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.grid_job import GridTerms
from adaptor.simulation.kernels import NEVER, Array

_SITE = "site"
_BAG = 1


class CoreBag:
    """A `DonationBag` on the scheduling core; `place.lot` says which processor runs which task."""

    def __init__(
        self,
        place: Processors[Simulation],
        runtimes: Array,
        terms: GridTerms,
        rules: DonationRules,
        allocation: Allocation,
    ) -> None:
        self.total = len(runtimes)
        self.last_end = 0
        self._place, self._runtimes, self._rules = place, runtimes, rules
        self._possible, self._max_tr = terms.possible, terms.rules.limits.max_tr
        self._broker = Broker({_SITE: site_terms(terms, rules)})
        spec = BagSpec(name="bag", cwd="/", output="", environment={}, allocation=allocation)
        self._bag = Bag(_BAG, spec, self.total)
        self._bag.fill()
        self._broker.add_bag(self._bag, _clock(place.cluster.now))
        self._keys: dict[int, AttemptKey] = {}
        """What runs, by processor."""
        self._pilots: dict[int, int] = {}
        """Of the donated processors in use, by processor."""
        self._made = 0
        self._estimate, self._longest = self._learner.estimate, 0
        self._used = self._donated = self._lost = self._reclaims = 0

    @property
    def done(self) -> int:
        return self._bag.count(TaskState.DONE) + self.failed

    @property
    def failed(self) -> int:
        return self._bag.count(TaskState.FAILED)

    @property
    def waiting(self) -> int:
        return self._bag.count(TaskState.WAITING)

    @property
    def _learner(self) -> RuntimeLearner:
        return self._broker.state.learner(_BAG, _SITE)

    def figures(self, now: int) -> dict[str, int]:
        used = self._used + self._place.used_until(now)
        return {"used": used, "donated": self._donated, "lost": self._lost, "reclaims": self._reclaims}

    def demand(self) -> Demand:
        (demand,) = self._broker.demands(_SITE)
        return demand

    def expire(self) -> None:
        lot, now = self._place.lot, self._place.cluster.now
        for p in sorted(self._pilots):
            if lot[k.UNTIL, p] <= now:
                self._leave(p, Leaving.TIME_UP)
        self._sync()

    def start(self, job: int, deadline: int | None) -> None:
        place = self._place
        place.learn(job, local=deadline is None)
        places = place.places_of(job).tolist()
        for p in places:
            if p in self._pilots:
                self._reclaims += 1
                self._leave(p, Leaving.SIGNAL)
        place.seat(job, deadline)
        if deadline is not None:
            for p in places:
                self._hello(p, job, deadline)
        self._sync()

    def end(self, job: int) -> None:
        lot = self._place.lot
        for p in np.flatnonzero((lot[k.OWNER] == job) & (lot[k.DEADLINE] >= 0)).tolist():
            self._goodbye(p, Leaving.TIME_UP if p in self._keys else Leaving.IDLE)
        self._place.vacate(job)
        self._sync()

    def expect(self, start: int | None) -> None:
        self._broker.expect_requests(_SITE, {} if start is None else {None: _clock(start)})

    def use_nodes(self) -> None:
        broker, place, now = self._broker, self._place, self._place.cluster.now
        broker.learn_hazard(_SITE, place.learner.hazard)
        demands = broker.donation_demands(_SITE)
        if demands:
            place.plan_ahead()
        closing = closes(self._rules.hours, _clock(now), _clock(0))
        for p, pilot in self._pilots.items():
            until, since = min(self._planned(p), closing), _clock(int(place.lot[k.SINCE, p]))
            broker.use_node(pilot, DonatedNode(since=since, until=until, closes=closing))
        view = DonationState(
            now=_clock(now),
            nodes=tuple(self._node(p) for p in range(place.lot.shape[1])),
            rules=self._rules,
            demands=tuple(each.wanted for each in demands),
            midnight=_clock(0),
        )
        for decision in decide(view, place.learner.hazard):
            match decision:
                case UseNodes():
                    for name in decision.nodes:
                        self._use(int(name), decision.until)
                case LeaveNodes():
                    for name in decision.nodes:
                        self._leave(int(name), Leaving.TOLD)
        self._sync()
        self.fill()

    def fill(self) -> None:
        lot = self._place.lot
        now = self._place.cluster.now
        for p in np.flatnonzero((lot[k.DEADLINE] > now) & (lot[k.TASK] < 0)).tolist():
            self._ask(p, now)
        for p in sorted(self._pilots, reverse=True):
            if p not in self._keys:
                self._ask(p, now)

    def run(self, until: int) -> int:
        place, lot = self._place, self._place.lot
        while True:
            p = int(lot[k.END].argmin())
            now = int(lot[k.END, p])
            if now > until or now == NEVER:
                return NEVER
            task, runtime = int(lot[k.TASK, p]), now - int(lot[k.START, p])
            promised_all = self._learner.needed_by(task) >= self._possible
            if p in self._pilots:
                self._donated += runtime
            self.last_end = now
            self._finish(p, now)
            if runtime > self._longest or promised_all:
                self._longest = max(self._longest, runtime)
                return now
            if not self._ask(p, now) and lot[k.DEADLINE, p] >= 0 and not place.busy(int(lot[k.OWNER, p])):
                return now

    def learn(self) -> bool:
        changed = self._learner.estimate != self._estimate
        self._sync()
        return changed

    def _sync(self) -> None:
        """What has changed until now is known to the driver."""
        self._estimate = self._learner.estimate

    # --- donated processors

    def _planned(self, p: int) -> float:
        """When a job is planned on a processor, by the broker's clock."""
        planned = int(self._place.lot[k.PLANNED, p])
        return math.inf if planned == NEVER else _clock(planned)

    def _node(self, p: int) -> NodeView:
        lot = self._place.lot
        ours = None
        if p in self._pilots:
            ours = DonatedUse(since=_clock(int(lot[k.USED, p])), busy=int(p in self._keys))
        return NodeView(
            name=str(p),
            processors=1,
            use=NodeUse.TAKEN if lot[k.OWNER, p] >= 0 else NodeUse.IDLE,
            since=_clock(int(lot[k.SINCE, p])),
            planned=self._planned(p),
            donated=ours,
        )

    def _use(self, p: int, until: float) -> None:
        """A pilot on a donated processor, as long as it may be."""
        lot, now = self._place.lot, self._place.cluster.now
        self._made -= 1
        pilot = self._pilots[p] = self._made  # jobs of the cluster have numbers from 0 on
        ends = now + self._max_tr if math.isinf(until) else min(now + self._max_tr, int(until - _clock(0)))
        lot[k.USED, p], lot[k.UNTIL, p] = now, ends
        planned = min(self._planned(p), until)
        self._broker.use_node(pilot, DonatedNode(since=_clock(int(lot[k.SINCE, p])), until=planned))
        self._hello(p, pilot, ends)

    def _leave(self, p: int, why: Leaving) -> None:
        lot, now = self._place.lot, self._place.cluster.now
        if p in self._keys:
            self._lost += now - int(lot[k.START, p])
        self._goodbye(p, why)
        self._give_back(p, now)

    def _give_back(self, p: int, now: int) -> None:
        self._used += now - int(self._place.lot[k.USED, p])
        self._place.lot[k.USED, p] = -1
        self._broker.forget_pilot(self._pilots.pop(p))

    # --- what the worker of a processor says to the broker

    def _hello(self, p: int, pilot: int, deadline: int) -> None:
        hello = Hello(
            pilot=pilot,
            node=str(p),
            pid=1,
            version="simulated",
            processors=1,
            memory=0,
            deadline=_clock(deadline),
        )
        self._broker.hello(str(p), hello, _SITE, _clock(self._place.cluster.now))

    def _ask(self, p: int, now: int) -> bool:
        """Ask for a task and start it; whether there was one. A donated processor without any is left."""
        drafts = self._report(p, now, free=1)
        grants = drafts[str(p)].grants
        if grants:
            (grant,) = grants
            self._keys[p] = grant.key
            lot = self._place.lot
            lot[k.TASK, p], lot[k.START, p] = grant.key.task, now
            lot[k.END, p] = now + int(self._runtimes[grant.key.task])
            return True
        self._report(p, now, free=0)  # until it asks again
        if p in self._pilots:
            self._broker.goodbye(str(p), Leaving.IDLE, [], _clock(now))
            self._give_back(p, now)
        return False

    def _report(
        self, p: int, now: int, *, free: int, results: Sequence[Result] = ()
    ) -> dict[str, DraftOrders]:
        report = Report(
            results=list(results),
            started=[self._keys[p]] if p in self._keys else [],
            free_processors=free,
            free_memory=0,
        )
        self._broker.report(str(p), report, _clock(now))
        return self._broker.drain()[1]

    def _finish(self, p: int, now: int) -> None:
        result = self._result(p, now, Ending.EXITED)
        self._report(p, now, free=0, results=[result])

    def _goodbye(self, p: int, why: Leaving) -> None:
        now = self._place.cluster.now
        failed = self.failed
        results = [self._result(p, now, Ending.ENDED)] if p in self._keys else []
        self._broker.goodbye(str(p), why, results, _clock(now))
        self._broker.drain()
        if self.failed > failed:
            self.last_end = now

    def _result(self, p: int, now: int, ending: Ending) -> Result:
        """How the task on a processor ended; nothing runs there any more."""
        lot = self._place.lot
        started = int(lot[k.START, p])
        lot[k.TASK, p], lot[k.END, p] = -1, NEVER
        exit_code = 0 if ending is Ending.EXITED else None
        return Result(
            key=self._keys.pop(p),
            ending=ending,
            started=_clock(started),
            wall=float(now - started),
            exit_code=exit_code,
        )


def _clock(second: int) -> float:
    """The broker's time of a second of the trace: for a worker, 0 means that a task has not started."""
    return float(second + 1)
