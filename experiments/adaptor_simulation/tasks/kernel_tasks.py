"""Tasks in a compiled kernel, for traces that need the speed: they do what `BrokerTasks` do."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from adaptor.crafting.situation import Demand, TaskGroup, TaskShape
from adaptor.donation.fitting import held, least_probability
from adaptor.donation.idleness import Hazard
from adaptor.donation.situation import DonationDemand, DonationRules
from adaptor.protocol.messages import AttemptKey
from adaptor.resources import TaskSize
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.demand import BagDonationDemand
from adaptor.scheduling.donation_facts import UNLEARNED, DonatedNode
from adaptor.scheduling.settling import NEAR_THE_END
from adaptor.scheduling.workers import HeldLease, Worker
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.kernels import NEVER, Array
from adaptor_simulation.tasks import kernels as k
from adaptor_simulation.tasks.broker_tasks import BrokerTasks, site_terms
from adaptor_simulation.tasks.protocol import BAG, SITE, Served, Tasks

_NO_RULES = DonationRules()
_SOME_TASK = AttemptKey(BAG, 0, 0)
"""Task of a worker on a donated node: the kernel alone knows which one it has."""


class KernelTasks(Broker):
    """`Tasks`, and the broker of their bag: without reserve and latency, of one processor each."""

    def __init__(self, runtimes: Array, terms: GridTerms, cluster: Cluster) -> None:
        """`runtimes` are whole seconds.

        Raises:
            ReplayError: the terms ask for what the kernel does not know (`GridTerms.compiled`).
        """
        if not terms.compiled:
            raise ReplayError(
                "the compiled kernel knows tasks of one processor, and workers without reserve and latency;"
                " on donated nodes neither max_nodes, reserve_nodes, hours, even odds nor parts of seconds"
            )
        super().__init__({SITE: site_terms(terms)})
        self.board = self
        self.failed: list[int] = []
        self._total, self._done = len(runtimes), 0
        self._idle_timeout, self._last = terms.workers.idle_timeout, terms.workers.last
        self._rules, self._allocation = terms.donation or _NO_RULES, terms.allocation
        self._learner = RuntimeLearner(
            initial=terms.assumed,
            factor=terms.growth_factor,
            longest=terms.possible,
            even_odds=terms.traits.even_odds,
        )
        self._earlier = terms.earlier
        self._demands: tuple[Demand, ...] | None = None  # as last asked for; None: tasks have gone on since
        self._wanted: tuple[BagDonationDemand, ...] | None = None  # the same on donated nodes
        self._left_at: int | None = None  # when `leave` was asked last; None: tasks have gone on since
        self._over_at: int | None = None
        """Last time at which workers ended tasks as the end of their pilot was near; None: a pilot started
        since."""
        self._ids: list[int] = []  # the pilots by row
        self._nodes: dict[int, DonatedNode] = {}  # by pilot on a donated node
        self._left: dict[int, Served] = {}
        self._saved: tuple[int, list[Array]] | None = None
        """Time to which the tasks were run ahead, and the state before."""
        self._hazard = UNLEARNED
        self._t = self._state_of(runtimes, cluster.processors, cluster.now)
        self._estimate()

    def _state_of(self, runtimes: Array, width: int, now: int) -> k.State:
        total = len(runtimes)
        levels = [
            math.inf if least <= 0 else -math.log(least)
            for least in (least_probability(self._allocation, self._rules), self._rules.last_fit)
        ]
        t = k.State(
            s=np.zeros(k.SCALARS, np.int64),
            tasks=np.zeros((4, total), np.int64),
            queue=np.zeros((2, total), np.int64),
            over=np.zeros(total, np.int64),
            pilots=np.zeros((1, k.PILOT_COLUMNS), np.int64),
            slots=np.full((4, width), -1, np.int64),
            heap=np.zeros(width, np.int64),
            hazard=k.numbers(self._hazard),
            levels=np.array(levels),
        )
        t.tasks[k.RUNTIME] = runtimes
        t.s[[k.LEASTS, k.LEASTS + 1]] = NEVER
        t.s[[k.LAST, k.ENDED, k.FORMAL]] = now, -1, -1
        t.s[k.NO_OTHER_PLACE] = self._allocation == "transparent"
        return t

    @property
    def ended(self) -> bool:
        return self._done + len(self.failed) == self._total

    @property
    def waiting(self) -> int:
        s: list[int] = self._t.s.tolist()
        return self._total - s[k.FRESH] + s[k.BACKS] + s[k.HELDS]

    @property
    def last_end(self) -> int:
        return int(self._t.s[k.LAST])

    # --- the board -------------------------------------------------------------------------------

    def demands(self, _site: str, _now: float | None = None) -> tuple[Demand, ...]:
        if self._demands is None:
            self._demands = self._demanded()
        return self._demands

    def _demanded(self) -> tuple[Demand, ...]:
        if self.ended or self._allocation == "transparent":
            return ()
        again = {*self._stack(k.BACK).tolist(), *self._stack(k.HELD).tolist()}
        # A task needs more than the time that it ran in vain, in a pilot too.
        ran = self._t.tasks[k.RAN]
        estimates = [max(self._learner.estimate_of(task), float(ran[task])) for task in again]
        if self._t.s[k.FRESH] < self._total or not again:
            estimates.append(self._learner.estimate)
        return (
            Demand(
                waiting=self.waiting,
                held=int(self._t.s[k.HELDS]) if self._allocation == "mixed" else 0,
                running=int(self._t.s[k.HEAP]),
                runtime=max(estimates),
                shortest=min(estimates),
                times=self._times(),
            ),
        )

    def _times(self) -> KnownRuntimes:
        running = int(self._t.s[k.HEAP])
        total, first = k.starts(self._t) if running else (0, NEVER)
        return msgspec.structs.replace(
            self._learner.known,
            running=running,
            starts=total,
            first_start=float(first) if running else None,
            earlier=self._earlier if self.waiting else None,
        )

    def sharers(self, _site: str, _demand: Demand) -> dict[int, float]:
        return {BAG: float(self.waiting)} if self.waiting else {}

    def groups(self) -> tuple[TaskGroup, ...]:
        return tuple(
            TaskGroup(demand.waiting, {SITE: demand}, {SITE: demand.running}) for demand in self.demands(SITE)
        )

    def donation_demands(self, _site: str) -> tuple[BagDonationDemand, ...]:
        if self._wanted is None:
            self._wanted = self._wanted_on_nodes()
        return self._wanted

    def _wanted_on_nodes(self) -> tuple[BagDonationDemand, ...]:
        s, apart = self._t.s, 0 if self._allocation == "transparent" else int(self._t.s[k.HELDS])
        wanted = []
        if self.waiting > apart:
            again = [self._stack(k.BACK), *([] if apart else [self._stack(k.HELD)])]
            fresh = s[k.FRESH] < self._total
            least = 0 if fresh else self._least_own(np.concatenate(again))
            wanted.append(self._donation_demand(self.waiting - apart, least, None))
        if apart and s[k.FORMAL] >= 0:
            least = self._least_own(self._stack(k.HELD))
            wanted.append(self._donation_demand(apart, least, float(s[k.FORMAL])))
        return tuple(BagDonationDemand(BAG, None, demand) for demand in wanted)

    def _donation_demand(self, waiting: int, least: int, held_until: float | None) -> DonationDemand:
        return DonationDemand(
            waiting=waiting,
            needs=float(max(int(self._t.s[k.NEEDED]), least)),
            allocation=self._allocation,
            held_until=held_until,
        )

    def _least_own(self, tasks: Array) -> int:
        """Seconds that the shortest of these tasks needs by itself."""
        return int(np.maximum(self._t.tasks[k.OWN, tasks], self._t.tasks[k.RAN, tasks]).min())

    def shapes(self, _site: str) -> set[TaskShape]:
        return set() if self.ended or self._allocation == "transparent" else {(TaskSize(), None)}

    def has_work_for(self, _site: str) -> bool:
        return not self.ended

    def has_waiting(self, _site: str) -> bool:
        return self.waiting > 0

    def use_node(self, pilot: int, node: DonatedNode) -> None:
        known, self._nodes[pilot] = self._nodes.get(pilot), node
        if known is not None and pilot in self._ids:
            self._t.pilots[self._ids.index(pilot), k.PLANNED] = _second(node.until)

    def learn_hazard(self, _site: str, hazard: Hazard) -> None:
        if hazard is not self._hazard:
            self._hazard = hazard
            self._t.hazard[:] = k.numbers(hazard)

    def expect_requests(self, _site: str, starts: dict[int | None, float]) -> None:
        formal = math.ceil(starts[None]) if None in starts else -1
        if formal != self._t.s[k.FORMAL]:
            self._t.s[k.FORMAL], self._wanted = formal, None

    # --- pilots ----------------------------------------------------------------------------------

    def add_pilot(self, pilot: int, processors: int, started: int, deadline: int) -> None:
        self._demands = self._wanted = self._left_at = self._over_at = None
        row = len(self._ids)
        if row == len(self._t.pilots):
            self._t = self._t._replace(pilots=np.concatenate([self._t.pilots, np.zeros_like(self._t.pilots)]))
        numbers = self._numbered(processors)
        self._ids.append(pilot)
        self._t.s[k.ROWS] += 1
        since, planned = NEVER, NEVER
        if (node := self._nodes.get(pilot)) is not None:
            since, planned = _second(node.since), _second(node.until)
        ends = max(started, deadline - self._last)
        self._t.pilots[row] = processors, ends, 0, started, 0, 0, numbers[0], since, planned
        self._t.slots[k.PILOT, numbers] = row
        self._t.slots[k.NEXT, numbers] = [*numbers[1:], -1]
        k.fill_row(self._t, row, started)
        worker = self.state.workers[str(pilot)] = Worker(
            str(pilot),
            pilot=pilot,
            site=SITE,
            node="",
            processors=processors,
            memory=0,
            deadline=float(deadline),
            seen=float(started),
        )
        if node is not None:  # where it has no task it leaves in the same second
            worker.held[_SOME_TASK] = HeldLease(leased=float(started), cpus=processors)
        self._send_home(started)

    def _numbered(self, processors: int) -> Array:
        """The slots of a pilot, behind those of the pilots that run."""
        used = np.flatnonzero(self._t.slots[k.PILOT] >= 0)
        first = int(used[-1]) + 1 if len(used) else 0
        if first + processors > self._t.slots.shape[1]:
            self._move(used, processors)
            first = len(used)
        return np.arange(first, first + processors)

    def _move(self, used: Array, more: int) -> None:
        """Number the slots in use from 0 on, with room for more behind them."""
        t, numbers = self._t, np.arange(len(used))
        size = max(t.slots.shape[1], 2 * (len(used) + more))
        if size > k.MOST_SLOTS:
            raise ValueError(f"running pilots of {len(used) + more} processors are beyond this replay")
        slots, heap = np.full((4, size), -1, np.int64), np.zeros(size, np.int64)
        renumbered = np.full(t.slots.shape[1] + 1, -1, np.int64)
        renumbered[used] = numbers
        slots[:, numbers] = t.slots[:, used]
        slots[k.NEXT, numbers] = renumbered[slots[k.NEXT, numbers]]
        t.pilots[:, k.FIRST] = renumbered[t.pilots[:, k.FIRST]]
        keys = t.heap[: t.s[k.HEAP]]
        heap[: len(keys)] = keys >> k.SHIFT << k.SHIFT | renumbered[keys & (k.MOST_SLOTS - 1)]
        self._t = t._replace(slots=slots, heap=heap)

    def end_pilot(self, pilot: int, now: int) -> Served:
        self._demands = self._wanted = self._left_at = None
        if pilot in self._left:
            return self._left.pop(pilot)
        row = self._ids.index(pilot)
        near = self._t.pilots[row, k.DEADLINE] + self._last - now < NEAR_THE_END
        served = self._remove(row, now, learn=bool(near))
        k.fill(self._t, now)
        self._send_home(now)
        return served

    def ahead(self, until: int) -> int:
        self._demands = self._wanted = self._left_at = None
        saved = [part.copy() for part in self._changing()]
        stop = int(k.ahead(self._t, until, self._idle_timeout))
        self._saved = stop, saved
        return stop

    def settle(self, now: int) -> bool:
        self._demands = self._wanted = self._left_at = None
        if self._saved is not None:
            stop, saved = self._saved
            self._saved = None
            if now < stop:
                self._restore(saved)
        before = self._learner.estimate
        self._learn()
        while k.go_on(self._t, now) != NEVER:
            self._learn()
        self._learn()
        self._time_up(now, k.first_over_or_fill)
        self._send_home(now)
        self._over_at = now
        return self._learner.estimate != before

    def leave(self, now: int) -> dict[int, Served]:
        if self._left_at == now:
            return {}
        self._demands = self._wanted = None
        if self._over_at != now:
            self._time_up(now, k.first_over)
            self._send_home(now)
        timeout = 0 if self.ended else self._idle_timeout
        while (row := k.last_idle(self._t, now, timeout)) >= 0:
            self._leaves(row, now)
        left, self._left, self._left_at = self._left, {}, now
        return left

    def _send_home(self, now: int) -> None:
        """Workers that have no task from this second on leave if they lack the time for all that wait."""
        if not self.waiting or not self._learner.seen.finished:
            return
        rows = self._rows
        idle = (rows[:, k.BUSY] == 0) & (rows[:, k.IDLE] == now) & (rows[:, k.SINCE] == NEVER)
        for row in np.flatnonzero(idle)[::-1].tolist():
            self._leaves(row, now)

    def _leaves(self, row: int, now: int) -> None:
        pilot = self._ids[row]
        self._left[pilot] = self._remove(row, now, learn=False)

    def _time_up(self, now: int, first_over: Callable[[k.State, int], int]) -> None:
        """Workers end their tasks as the end of their pilot is near, one after the other."""
        while (row := first_over(self._t, now)) >= 0:
            pilot = self._ids[row]
            self._left[pilot] = self._remove(row, now, learn=True)
            k.fill(self._t, now)

    def _remove(self, row: int, now: int, *, learn: bool) -> Served:
        """A pilot is over: what ran in it waits again. Returns what was done in it."""
        slots, donated = self._t.slots, self._rows[row, k.SINCE] < NEVER
        places = np.flatnonzero((slots[k.PILOT] == row) & (slots[k.TASK] >= 0))
        tasks, ran = slots[k.TASK, places].tolist(), (now - slots[k.START, places]).tolist()
        done, work = self._rows[row, [k.DONE, k.WORK]].tolist()
        k.remove_pilot(self._t, row)
        pilot = self._ids.pop(row)
        self._nodes.pop(pilot, None)
        del self.state.workers[str(pilot)]
        for task, seconds in zip(tasks, ran, strict=True):
            if learn:
                self._learner.cut(task, seconds)
            elif donated:
                self._preempt(task, seconds)
            if self._learner.hopeless(task):
                self._give_up(task, now)
            else:
                self._put_back(task)
        self._estimate()
        return Served(done, work, len(tasks), sum(ran))

    def _preempt(self, task: int, ran: int) -> None:
        known = self._t.tasks[:, task]
        known[k.RAN] = max(known[k.RAN], ran)
        known[k.PREEMPTED] += 1

    def _give_up(self, task: int, now: int) -> None:
        self.failed.append(task)
        self._learner.forget(task)
        self._t.s[k.LAST] = now

    def _put_back(self, task: int) -> None:
        s, known = self._t.s, self._t.tasks[:, task]
        if task in self._learner.cuts:
            known[k.OWN] = math.ceil(self._learner.needed_by(task))
        stack = k.HELD if held(int(known[k.PREEMPTED]), self._rules) else k.BACK
        self._t.queue[stack, s[k.BACKS + stack]] = task
        s[k.BACKS + stack] += 1
        s[k.LEASTS + stack] = min(int(s[k.LEASTS + stack]), max(int(known[k.OWN]), int(known[k.RAN])))

    # --- what is learned ---------------------------------------------------------------------------

    def _learn(self) -> None:
        """Learn from the tasks that are done."""
        if not self._t.s[k.COUNT]:
            return
        s = self._t.s.tolist()
        self._done += s[k.COUNT]
        self._learner.seen.add_all(s[k.COUNT], float(s[k.TOTAL]), float(s[k.SQUARES]), float(s[k.LONGEST]))
        for task in self._t.over[: s[k.OVER]].tolist():
            self._learner.forget(task)
        self._t.s[k.COUNT : k.OVER + 1] = 0
        self._estimate()

    def _estimate(self) -> None:
        s, estimate = self._t.s, math.ceil(self._learner.estimate)
        known = self._learner.knows or self._earlier
        s[k.ESTIMATE], s[k.NEEDED] = estimate, estimate if known else 0
        s[k.KNOWN], s[k.KNOWN_TOTAL] = self._learner.odds or (-1, 0.0)
        s[k.RAISED] = self._learner.seen.missing_for(len(self._learner.cuts)) if self._learner.raised else 0

    # --- the arrays ----------------------------------------------------------------------------------

    @property
    def _rows(self) -> Array:
        return self._t.pilots[: len(self._ids)]

    def _stack(self, stack: int) -> Array:
        return self._t.queue[stack, : self._t.s[k.BACKS + stack]]

    def _changing(self) -> list[Array]:
        """All that `run` changes."""
        t, slots = self._t, self._t.slots[: k.START + 1]
        return [t.s, self._rows, slots, t.heap[: t.s[k.HEAP]], self._stack(k.BACK), self._stack(k.HELD)]

    def _restore(self, saved: list[Array]) -> None:
        self._t.s[:] = saved[0]
        for part, before in zip(self._changing(), saved, strict=True):
            part[:] = before


def tasks_of(runtimes: Array, terms: GridTerms, cluster: Cluster) -> Tasks:
    """In the compiled kernel where it knows all that the terms ask for, else of the broker (`MakeTasks`)."""
    return (KernelTasks if terms.compiled else BrokerTasks)(runtimes, terms, cluster)


def _second(time: float) -> int:
    return NEVER if math.isinf(time) else int(time)
