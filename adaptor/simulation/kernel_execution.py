"""A grid job in a compiled kernel, for traces that need the speed: it does what `CoreExecution` does."""

from __future__ import annotations

import math

import numpy as np

from adaptor.crafting.learning import LearnedRuntimes, RuntimeLearner
from adaptor.crafting.situation import Demand, TaskTimes
from adaptor.scheduling.settling import NEAR_THE_END
from adaptor.simulation import task_kernels as k
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.execution import Served
from adaptor.simulation.grid_job import GridTerms
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.pilot_requests import Cluster


class KernelExecution:
    """An `Execution` without reserve, latency and replicas; one processor per task."""

    def __init__(self, runtimes: Array, terms: GridTerms, cluster: Cluster) -> None:
        """`runtimes` are whole seconds.

        Raises:
            ReplayError: the terms ask for what the kernel does not know (`GridTerms.compiled`).
        """
        if not terms.compiled:
            raise ReplayError(
                "the compiled kernel knows tasks of one processor, and workers without reserve, latency and"
                " replicas only"
            )
        tasks, width = len(runtimes), min(terms.rules.limits.max_proc, cluster.processors)
        self.failed: list[int] = []
        self._total, self._done = tasks, 0
        self._idle_timeout, self._last = terms.workers.idle_timeout, terms.workers.last
        self._learner = RuntimeLearner(
            initial=terms.initial_tr,
            factor=terms.growth_factor,
            longest=terms.possible,
            even_odds=terms.traits.even_odds,
        )
        self._runtimes = runtimes
        self._scalars = np.zeros(k.SCALARS, np.int64)
        self._scalars[[k.LEAST_BACK, k.LAST, k.ENDED]] = NEVER, cluster.now, -1
        self._own = np.zeros(tasks, np.int64)
        self._back, self._over = (np.zeros(tasks, np.int64) for _ in range(2))
        self._ids: list[int] = []
        """The pilots by row."""
        self._left: dict[int, Served] = {}
        self._saved: tuple[int, list[Array]] | None = None
        """Where the tasks were run ahead to, and how all was before."""
        self._pilots = np.zeros((1, k.PILOT_COLUMNS), np.int64)
        self._tasks, self._starts = np.full((1, width), -1, np.int64), np.zeros((1, width), np.int64)
        self._heap = np.zeros(width, np.int64)
        self._estimate()

    @property
    def ended(self) -> bool:
        return self._done + len(self.failed) == self._total

    @property
    def last_end(self) -> int:
        return int(self._scalars[k.LAST])

    @property
    def learned(self) -> LearnedRuntimes:
        return self._learner.learned

    def demands(self) -> tuple[Demand, ...]:
        if self.ended:
            return ()
        back, fresh = int(self._scalars[k.BACK]), self._fresh
        estimates = [self._learner.estimate_of(task) for task in set(self._back[:back].tolist())]
        if fresh or not back:
            estimates.append(self._learner.estimate)
        return (
            Demand(
                waiting=fresh + back,
                running=sum(pilot[k.BUSY] for pilot in self._rows()),
                runtime=max(estimates),
                shortest=min(estimates),
                times=self._times(),
            ),
        )

    def _times(self) -> TaskTimes:
        known = self._learner.learned
        rows = self._tasks[: len(self._ids)]
        started = self._starts[: len(self._ids)][rows >= 0]
        return TaskTimes(
            finished=known.finished,
            mean=self._learner.mean or 0.0,
            longest=known.longest,
            not_enough=known.not_enough,
            mean_start=float(started.mean()) if len(started) else None,
            first_start=float(started.min()) if len(started) else None,
        )

    @property
    def _fresh(self) -> int:
        return self._total - int(self._scalars[k.FRESH])

    @property
    def _waiting(self) -> int:
        return self._fresh + int(self._scalars[k.BACK])

    def add_pilot(self, pilot: int, processors: int, started: int, deadline: int) -> None:
        if processors > self._tasks.shape[1]:
            raise ValueError(f"a pilot of {processors} processors is wider than any request may be")
        row = len(self._ids)
        if row == len(self._pilots):
            self._grow()
        self._ids.append(pilot)
        self._scalars[k.ROWS] += 1
        self._pilots[row] = processors, max(started, deadline - self._last), 0, 0, started, 0
        self._fill_row(row, started)

    def end_pilot(self, pilot: int, now: int) -> Served:
        row = self._ids.index(pilot)
        near = self._pilots[row, k.DEADLINE] + self._last - now < NEAR_THE_END
        done = self._remove(row, now, learn=bool(near))
        self._fill(now)
        return done

    def ahead(self) -> int:
        rows = self._rows()
        stops = [row[k.DEADLINE] for row in rows]
        stops += [row[k.IDLE] + self._idle_timeout for row in rows if not row[k.BUSY]]
        stop = min(stops, default=NEVER)
        saved = self._save()
        stop = min(self._run(stop), stop)
        self._saved = stop, saved
        return stop

    def settle(self, now: int) -> bool:
        if self._saved is not None:
            stop, saved = self._saved
            self._saved = None
            if now < stop:
                self._restore(saved)
        before = self._learner.estimate
        self._go_on(now)
        while self._run(now) != NEVER:
            self._go_on(now)
        self._learn()
        self._time_up(now)
        self._fill(now)
        return self._learner.estimate != before

    def leave(self, now: int) -> dict[int, Served]:
        self._time_up(now)
        for row in reversed(range(len(self._ids))):
            idle = self._pilots[row, k.IDLE]
            lacks_time = idle == now and self._waiting > 0 and self._learner.mean is not None
            over = self.ended or lacks_time or idle + self._idle_timeout <= now
            if over and not self._pilots[row, k.BUSY]:
                pilot = self._ids[row]
                self._left[pilot] = self._remove(row, now, learn=False)
        left, self._left = self._left, {}
        return left

    def _go_on(self, now: int) -> None:
        """Learn what is to be learned, then start tasks in the pilot that waits for that."""
        self._learn()
        row = int(self._scalars[k.ROW])
        if row >= 0:
            self._fill_row(row, now)

    def _time_up(self, now: int) -> None:
        """Workers end their tasks as the end of their pilot is near, one after the other."""
        row = 0
        while row < len(self._ids):
            if self._pilots[row, k.DEADLINE] > now:
                row += 1
                continue
            pilot = self._ids[row]
            self._left[pilot] = self._remove(row, now, learn=True)
            self._fill(now)

    def _remove(self, row: int, now: int, *, learn: bool) -> Served:
        """A pilot is over: what ran in it waits again. Returns what was done in it."""
        places = np.flatnonzero(self._tasks[row] >= 0)
        done = Served(int(self._pilots[row, k.DONE]), int(self._pilots[row, k.WORK]))
        tasks, ran = self._tasks[row, places].tolist(), (now - self._starts[row, places]).tolist()
        k.remove_pilot(self._scalars, self._pilots, self._tasks, self._starts, self._heap, row)
        del self._ids[row]
        for task, seconds in zip(tasks, ran, strict=True):
            if learn:
                self._learner.cut(task, seconds)
            if self._learner.hopeless(task):
                self._give_up(task, now)
            else:
                self._put_back(task)
        self._estimate()
        return done

    def _give_up(self, task: int, now: int) -> None:
        self.failed.append(task)
        self._learner.forget(task)
        self._scalars[k.LAST] = now

    def _put_back(self, task: int) -> None:
        s = self._scalars
        own = math.ceil(self._learner.needed_by(task)) if task in self._learner.cut_tasks else 0
        self._own[task] = own
        self._back[s[k.BACK]] = task
        s[k.BACK] += 1
        s[k.LEAST_BACK] = min(int(s[k.LEAST_BACK]), own)

    def _learn(self) -> None:
        """Learn from the tasks that are done."""
        s = self._scalars.tolist()
        if not s[k.COUNT]:
            return
        self._done += s[k.COUNT]
        self._learner.finished_together(
            s[k.COUNT], float(s[k.TOTAL]), float(s[k.SQUARES]), float(s[k.LONGEST])
        )
        for task in self._over[: s[k.OVER]].tolist():
            self._learner.forget(task)
        for sum_until_now in (k.COUNT, k.TOTAL, k.SQUARES, k.OVER):
            self._scalars[sum_until_now] = 0
        self._estimate()

    def _estimate(self) -> None:
        self._scalars[k.ESTIMATE] = math.ceil(self._learner.estimate)
        self._scalars[[k.KNOWN, k.KNOWN_TOTAL]] = self._learner.odds or (-1, 0.0)

    def _run(self, until: int) -> int:
        return k.run(
            self._scalars, self._runtimes, self._own, self._back, self._over,
            self._pilots, self._tasks, self._starts, self._heap, until,
        )  # fmt: skip

    def _fill_row(self, row: int, now: int) -> None:
        k.fill_row(
            self._scalars, self._runtimes, self._own, self._back,
            self._pilots, self._tasks, self._starts, self._heap, row, now,
        )  # fmt: skip

    def _fill(self, now: int) -> None:
        k.fill(
            self._scalars, self._runtimes, self._own, self._back,
            self._pilots, self._tasks, self._starts, self._heap, now,
        )  # fmt: skip

    def _rows(self) -> list[list[int]]:
        rows: list[list[int]] = self._pilots[: len(self._ids)].tolist()
        return rows

    def _save(self) -> list[Array]:
        """All that `run` changes."""
        parts = (self._scalars, self._pilots, self._tasks, self._starts)
        back, heap = self._back[: self._scalars[k.BACK]], self._heap[: self._scalars[k.HEAP]]
        return [part.copy() for part in (*parts, back, heap)]

    def _restore(self, saved: list[Array]) -> None:
        self._scalars, self._pilots, self._tasks, self._starts, back, heap = saved
        self._back[: len(back)] = back
        self._heap[: len(heap)] = heap

    def _grow(self) -> None:
        rows, width = self._tasks.shape
        if 2 * rows * width > k.MOST_SLOTS:
            raise ValueError(f"{2 * rows} running pilots of {width} processors are beyond this replay")
        self._pilots = np.concatenate([self._pilots, np.zeros_like(self._pilots)])
        self._tasks = np.concatenate([self._tasks, np.full_like(self._tasks, -1)])
        self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        self._heap = np.concatenate([self._heap, np.zeros_like(self._heap)])
