"""Tasks in a compiled kernel, for traces that need the speed: they do what `BrokerTasks` do."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from adaptor.crafting.situation import Demand, TaskGroup, TaskShape
from adaptor.resources import TaskSize
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.settling import NEAR_THE_END
from adaptor.scheduling.workers import Worker
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.kernels import NEVER, Array
from adaptor_simulation.tasks import kernels as k
from adaptor_simulation.tasks.broker_tasks import BrokerTasks, site_terms
from adaptor_simulation.tasks.protocol import BAG, SITE, Served, Tasks


class KernelTasks(Broker):
    """`Tasks`, and the broker of their bag: without reserve and latency, of one processor each."""

    def __init__(self, runtimes: Array, terms: GridTerms, cluster: Cluster) -> None:
        """`runtimes` are whole seconds.

        Raises:
            ReplayError: the terms ask for what the kernel does not know (`GridTerms.compiled`).
        """
        if not terms.compiled:
            raise ReplayError(
                "the compiled kernel knows tasks of one processor in pilots of formal requests, and workers"
                " without reserve and latency"
            )
        super().__init__({SITE: site_terms(terms)})
        self.board = self
        self.failed: list[int] = []
        self._total, self._done = len(runtimes), 0
        self._idle_timeout, self._last = terms.workers.idle_timeout, terms.workers.last
        self._learner = RuntimeLearner(
            initial=terms.assumed,
            factor=terms.growth_factor,
            longest=terms.possible,
            even_odds=terms.traits.even_odds,
        )
        self._earlier = terms.earlier
        self._demands: tuple[Demand, ...] | None = None  # as last asked for; None: tasks have gone on since
        self._left_at: int | None = None  # when `leave` was asked last; None: tasks have gone on since
        self._over_at: int | None = None
        """Last time at which workers ended tasks as the end of their pilot was near; None: a pilot started
        since."""
        self._ids: list[int] = []  # the pilots by row
        self._left: dict[int, Served] = {}
        self._saved: tuple[int, list[Array]] | None = None
        """Time to which the tasks were run ahead, and the state before."""
        self._t = self._state_of(runtimes, cluster.processors, cluster.now)
        self._estimate()

    def _state_of(self, runtimes: Array, width: int, now: int) -> k.State:
        total = len(runtimes)
        t = k.State(
            s=np.zeros(k.SCALARS, np.int64),
            tasks=np.zeros((2, total), np.int64),
            back=np.zeros(total, np.int64),
            over=np.zeros(total, np.int64),
            pilots=np.zeros((1, k.PILOT_COLUMNS), np.int64),
            slots=np.full((4, width), -1, np.int64),
            heap=np.zeros(width, np.int64),
        )
        t.tasks[k.RUNTIME] = runtimes
        t.s[[k.LEAST, k.LAST, k.ENDED]] = NEVER, now, -1
        return t

    @property
    def ended(self) -> bool:
        return self._done + len(self.failed) == self._total

    @property
    def waiting(self) -> int:
        s: list[int] = self._t.s.tolist()
        return self._total - s[k.FRESH] + s[k.BACKS]

    @property
    def last_end(self) -> int:
        return int(self._t.s[k.LAST])

    # --- the board -------------------------------------------------------------------------------

    def demands(self, _site: str, _now: float | None = None) -> tuple[Demand, ...]:
        if self._demands is None:
            self._demands = self._demanded()
        return self._demands

    def _demanded(self) -> tuple[Demand, ...]:
        if self.ended:
            return ()
        again = self._back.tolist()
        estimates = [*map(self._learner.estimate_of, again)]
        if self._t.s[k.FRESH] < self._total or not again:
            estimates.append(self._learner.estimate)
        return (
            Demand(
                waiting=self.waiting,
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

    def shapes(self, _site: str) -> set[TaskShape]:
        return set() if self.ended else {(TaskSize(), None)}

    def has_work_for(self, _site: str) -> bool:
        return not self.ended

    def has_waiting(self, _site: str) -> bool:
        return self.waiting > 0

    # --- pilots ----------------------------------------------------------------------------------

    def add_pilot(self, pilot: int, processors: int, started: int, deadline: int) -> None:
        self._demands = self._left_at = self._over_at = None
        row = len(self._ids)
        if row == len(self._t.pilots):
            self._t = self._t._replace(pilots=np.concatenate([self._t.pilots, np.zeros_like(self._t.pilots)]))
        numbers = self._numbered(processors)
        self._ids.append(pilot)
        self._t.s[k.ROWS] += 1
        ends = max(started, deadline - self._last)
        self._t.pilots[row] = processors, ends, 0, started, 0, 0, numbers[0]
        self._t.slots[k.PILOT, numbers] = row
        self._t.slots[k.NEXT, numbers] = [*numbers[1:], -1]
        k.fill_row(self._t, row, started)
        self.state.workers[str(pilot)] = Worker(
            str(pilot),
            pilot=pilot,
            site=SITE,
            node="",
            processors=processors,
            memory=0,
            deadline=float(deadline),
            seen=float(started),
        )
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
        self._demands = self._left_at = None
        if pilot in self._left:
            return self._left.pop(pilot)
        row = self._ids.index(pilot)
        near = self._t.pilots[row, k.DEADLINE] + self._last - now < NEAR_THE_END
        served = self._remove(row, now, learn=bool(near))
        k.fill(self._t, now)
        self._send_home(now)
        return served

    def ahead(self, until: int) -> int:
        self._demands = self._left_at = None
        saved = [part.copy() for part in self._changing()]
        stop = int(k.ahead(self._t, until, self._idle_timeout))
        self._saved = stop, saved
        return stop

    def settle(self, now: int) -> bool:
        self._demands = self._left_at = None
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
        self._demands = None
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
        idle = (rows[:, k.BUSY] == 0) & (rows[:, k.IDLE] == now)
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
        slots = self._t.slots
        places = np.flatnonzero((slots[k.PILOT] == row) & (slots[k.TASK] >= 0))
        tasks, ran = slots[k.TASK, places].tolist(), (now - slots[k.START, places]).tolist()
        done, work = self._rows[row, [k.DONE, k.WORK]].tolist()
        k.remove_pilot(self._t, row)
        del self.state.workers[str(self._ids.pop(row))]
        for task, seconds in zip(tasks, ran, strict=True):
            if learn:
                self._learner.cut(task, seconds)
            if self._learner.hopeless(task):
                self._give_up(task, now)
            else:
                self._put_back(task)
        self._estimate()
        return Served(done, work, len(tasks), sum(ran))

    def _give_up(self, task: int, now: int) -> None:
        self.failed.append(task)
        self._learner.forget(task)
        self._t.s[k.LAST] = now

    def _put_back(self, task: int) -> None:
        s, own = self._t.s, self._t.tasks[k.OWN]
        if task in self._learner.cuts:
            own[task] = math.ceil(self._learner.needed_by(task))
        self._t.back[s[k.BACKS]] = task
        s[k.BACKS] += 1
        s[k.LEAST] = min(int(s[k.LEAST]), int(own[task]))

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
        s = self._t.s
        s[k.ESTIMATE] = math.ceil(self._learner.estimate)
        s[k.KNOWN], s[k.KNOWN_TOTAL] = self._learner.odds or (-1, 0.0)
        s[k.RAISED] = self._learner.seen.missing_for(len(self._learner.cuts)) if self._learner.raised else 0

    # --- the arrays ----------------------------------------------------------------------------------

    @property
    def _rows(self) -> Array:
        return self._t.pilots[: len(self._ids)]

    @property
    def _back(self) -> Array:
        return self._t.back[: self._t.s[k.BACKS]]

    def _changing(self) -> list[Array]:
        """All that `run` changes."""
        t, slots = self._t, self._t.slots[: k.START + 1]
        return [t.s, self._rows, slots, t.heap[: t.s[k.HEAP]], self._back]

    def _restore(self, saved: list[Array]) -> None:
        self._t.s[:] = saved[0]
        for part, before in zip(self._changing(), saved, strict=True):
            part[:] = before


def tasks_of(runtimes: Array, terms: GridTerms, cluster: Cluster) -> Tasks:
    """In the compiled kernel where it knows all that the terms ask for, else of the broker (`MakeTasks`)."""
    return (KernelTasks if terms.compiled else BrokerTasks)(runtimes, terms, cluster)
