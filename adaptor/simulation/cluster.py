"""A simulated space-shared cluster that can be forked: it replays a trace and takes jobs from outside."""

from __future__ import annotations

from typing import Literal

import numpy as np

from adaptor.simulation import kernels as k
from adaptor.simulation.jobs import Jobs, check_jobs
from adaptor.simulation.kernels import Array
from adaptor.simulation.outside_jobs import OutsideJob, OutsideJobs, doubled

Policy = Literal["conservative", "easy"]

POLICIES: dict[Policy, int] = {"conservative": k.CONSERVATIVE, "easy": k.EASY}


class Simulation:
    """A cluster of `processors` under a policy, with the jobs of a trace; time is whole seconds.

    Whoever drives it acts at the end of a second: after `advance(t)` all that the trace does at t has
    happened, and what is submitted then comes last in that second (it may still start in it). Jobs of
    the trace are known by their index, jobs from outside by the numbers that follow.

    A fork shares nothing that changes with its origin and costs a few small copies of memory, so that
    the way to an instant is simulated once for all that is tried there.

    Raises:
        TraceError: the jobs do not fit the machine (see `check_jobs`).
        ValueError: the policy is unknown, or there is no processor.
    """

    def __init__(self, jobs: Jobs, processors: int, policy: Policy) -> None:
        if policy not in POLICIES:
            raise ValueError(f"{policy!r} is no scheduling policy; there are {', '.join(POLICIES)}")
        if processors < 1:
            raise ValueError(f"a cluster of {processors} processors runs nothing")
        check_jobs(jobs, processors)
        self.jobs = jobs
        self.processors = processors
        self.policy: Policy = policy
        self._parent: Simulation | None = None
        self._first_own = 0  # jobs before it had started when this was forked
        self._table = jobs.table()
        self._starts = np.full(len(jobs), -1, np.int64)
        self._outside = OutsideJobs(len(jobs))
        self._scalars = np.zeros(k.SCALARS, np.int64)
        self._scalars[[k.POLICY, k.HI, k.NEXT_START]] = POLICIES[policy], 1, k.NEVER
        for begin in (k.LEFT_BEGIN, k.LEFT_TAIL):
            self._scalars[begin : begin + k.WIDTHS] = k.NEVER
        self._profile = np.zeros((2, 256), np.int64)
        self._profile[k.FREE, 0] = processors
        self._running = np.zeros((128, 3), np.int64)
        self._waiting = np.zeros((128, k.WAITING_COLUMNS), np.int64)

    def fork(self) -> Simulation:
        """A copy that goes its own way from here on."""
        twin = object.__new__(Simulation)
        twin.jobs, twin.processors, twin.policy = self.jobs, self.processors, self.policy
        twin._parent, twin._table = self, self._table
        twin._scalars = self._scalars.copy()
        twin._outside = self._outside.fork()
        twin._profile = self._profile.copy()
        twin._running = self._running.copy()
        twin._waiting = self._waiting.copy()
        ours = self._of_trace(self.waiting_rows()[:, k.W_JOB])
        entered = int(self._scalars[k.NEXT_JOB])
        first = int(ours[0]) if len(ours) else entered
        running = self._of_trace(self.running_rows()[:, k.RUN_JOB])
        # Starts of jobs that ended before stay with the parent, where they change no more.
        twin._first_own = first
        twin._starts = np.empty_like(self._starts)
        twin._starts[first:entered] = self._starts[first:entered]
        twin._starts[running] = self._starts[running]
        return twin

    @property
    def now(self) -> int:
        return int(self._scalars[k.NOW])

    @property
    def changes(self) -> int:
        """How many starts and ends of jobs from outside there have been."""
        return int(self._scalars[k.CHANGES])

    def next_event(self) -> int | None:
        """When something happens next; None where nothing will."""
        coming = self._table[self._scalars[k.NEXT_JOB] :, k.SUBMIT][:1]
        times = [*coming.tolist(), *self.running_rows()[:1, k.RUN_END].tolist()]
        soonest = min([*times, int(self._scalars[k.NEXT_START])])
        return soonest if soonest < k.NEVER else None

    def advance(self, until: int) -> None:
        """Let everything up to and including second `until` happen.

        Raises:
            ValueError: that is in the past.
        """
        self._play(until, watch=False)
        self._scalars[k.NOW] = until

    def advance_to_change(self, until: int) -> bool:
        """Like `advance`, but stop after the second in which a job from outside starts or ends.

        Returns:
            Whether it stopped for that; `now` says when.
        """
        if self._play(until, watch=True):
            return True
        self._scalars[k.NOW] = until
        return False

    def finish(self) -> None:
        """Let everything happen."""
        self._play(k.NEVER - 1, watch=False)

    def submit(self, processors: int, tr: int, run: int | None = None) -> int:
        """A job from outside arrives now.

        Args:
            processors: 1 to those of the machine.
            tr: its time limit in seconds, at least 1; all that the scheduler knows.
            run: how long it will run; None: until its limit, unless `end` says otherwise.

        Raises:
            ValueError: the cluster could never run it.
        """
        run = tr if run is None else run
        self._check(processors, tr, run)
        job = self._outside.add(self.now, processors, tr, run)
        self._make_room()
        k.enter(self._scalars, self._profile, self._waiting, job, processors, tr)
        self._play(self.now, watch=False)
        return job

    def end(self, job: int, at: int) -> None:
        """Let a running job from outside end at a time of its limit's or before; may be now.

        Raises:
            KeyError: no such job from outside.
            ValueError: it does not run, or `at` is in the past or beyond its limit.
        """
        row = self._outside.row(job)
        start, limit = int(row[k.START]), int(row[k.LIMIT])
        if start < 0 or row[k.END] >= 0:
            raise ValueError(f"job {job} does not run")
        if not self.now <= at <= start + limit:
            raise ValueError(f"job {job} cannot end at {at}: it is {self.now}, its limit is {start + limit}")
        s, running = self._scalars, self._running
        low, high = int(s[k.RUN_LO]), int(s[k.RUN_HI])
        place = low + int(np.argmax(running[low:high, k.RUN_JOB] == job))
        order = int(running[place, k.RUN_ORDER])
        running[place : high - 1] = running[place + 1 : high].copy()
        s[k.RUN_HI] = high - 1
        k.place(s, running, at, job, order)
        row[k.RUN] = at - start
        self._play(self.now, watch=False)

    def cancel(self, job: int) -> None:
        """End a job from outside now, or take it out of the queue; nothing where it has ended.

        Raises:
            KeyError: no such job from outside.
        """
        row = self._outside.row(job)
        if row[k.END] >= 0:
            return
        if row[k.START] >= 0:
            self.end(job, self.now)
            return
        row[k.END] = self.now
        place = int(np.argmax(self.waiting_rows()[:, k.W_JOB] == job))
        k.withdraw(self._scalars, self._profile, self._waiting, place)
        self._play(self.now, watch=False)

    def reshape(self, job: int, processors: int, tr: int) -> None:
        """Let a waiting job from outside ask for something else; it keeps its place in the queue.

        Raises:
            KeyError: no such job from outside.
            ValueError: it does not wait, or the cluster could never run it.
        """
        row = self._outside.row(job)
        if row[k.START] >= 0 or row[k.END] >= 0:
            raise ValueError(f"job {job} does not wait")
        self._check(processors, tr, tr)
        row[[k.RUN, k.LIMIT, k.NEED]] = tr, tr, processors
        self._make_room()
        place = int(np.argmax(self.waiting_rows()[:, k.W_JOB] == job))
        k.reshape(self._scalars, self._profile, self._waiting, place, processors, tr)
        self._play(self.now, watch=False)

    def outside_job(self, job: int) -> OutsideJob:
        """Raises KeyError: no such job from outside."""
        return self._outside.job(job)

    def starts(self, first: int = 0) -> Array:
        """The starts of the jobs of the trace from this one on, -1 for those that have not started."""
        starts: Array = self._starts[first:].copy()
        starts[max(0, int(self._scalars[k.NEXT_JOB]) - first) :] = -1
        if self._parent is not None and first < self._first_own:
            others = self._first_own - first
            starts[:others] = self._parent.starts(first)[:others]
        return starts

    def profile(self) -> tuple[Array, Array]:
        """Times, the first of them now, and the processors free from each on; the last for ever.

        Under conservative backfilling the reservations of waiting jobs are in it, under EASY only what
        runs.
        """
        k.roll(self._scalars, self._profile)
        low, high = self._scalars[k.LO], self._scalars[k.HI]
        return self._profile[k.TIME, low:high].copy(), self._profile[k.FREE, low:high].copy()

    def started_job(self, job: int) -> tuple[int, int, int]:
        """Start, time limit and processors of a job that runs now."""
        if job < len(self._table):
            _, _, limit, need = self._table[job].tolist()
            return int(self._starts[job]), limit, need
        row = self._outside.row(job)
        return int(row[k.START]), int(row[k.LIMIT]), int(row[k.NEED])

    def running_rows(self) -> Array:
        """A view: the running jobs by their coming end, in the columns of `kernels`."""
        return self._running[self._scalars[k.RUN_LO] : self._scalars[k.RUN_HI]]

    def waiting_rows(self) -> Array:
        """A view: the waiting jobs in the order of submission, in the columns of `kernels`."""
        return self._waiting[: self._scalars[k.WAITING]]

    def _of_trace(self, ids: Array) -> Array:
        return ids[ids < len(self._table)]

    def _play(self, until: int, *, watch: bool) -> bool:
        if until < self.now:
            raise ValueError(f"the clock is at {self.now} and does not go back to {until}")
        self._scalars[k.TOUCHED] = 0
        while (
            k.advance(
                self._scalars,
                self._table,
                self._starts,
                self._outside.table,
                self._profile,
                self._running,
                self._waiting,
                until,
                watch,
            )
            == k.FULL
        ):
            self._grow()
        return bool(self._scalars[k.TOUCHED])

    def _check(self, processors: int, tr: int, run: int) -> None:
        """Raises ValueError: the cluster could never run such a job."""
        if not 1 <= processors <= self.processors:
            raise ValueError(f"{processors} processors asked of a cluster of {self.processors}")
        if tr < 1 or not 0 <= run <= tr:
            raise ValueError(f"a job of {run} s with a limit of {tr} s")

    def _make_room(self) -> None:
        """For one more job that waits, or a change of one."""
        while not k.has_room(self._scalars, self._profile, self._running, self._waiting):
            self._grow()

    def _grow(self) -> None:
        self._running, self._waiting = doubled(self._running), doubled(self._waiting)
        self._profile = np.ascontiguousarray(doubled(self._profile.T).T)
