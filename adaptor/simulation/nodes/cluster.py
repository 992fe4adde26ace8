"""A simulated cluster of nodes: as `adaptor.simulation.cluster`, and a hole is one that a job fits."""

from __future__ import annotations

import numpy as np

from adaptor.resources import Need, Part
from adaptor.simulation.cluster import POLICIES, Policy
from adaptor.simulation.jobs import Jobs, check_jobs
from adaptor.simulation.kernels import (
    END,
    FULL,
    LIMIT,
    NEED,
    NEVER,
    RUN,
    RUN_END,
    RUN_JOB,
    RUN_ORDER,
    START,
    SUBMIT,
    W_JOB,
    Array,
)
from adaptor.simulation.nodes import kernels as k
from adaptor.simulation.nodes.machine import LaidOut, Machine
from adaptor.simulation.outside_jobs import OutsideJob, doubled

_SMALL = 64
"""Rows to begin with."""


class NodeCluster:
    """Has the methods of `Simulation`, whose starts it has where all processors are one node.

    Raises:
        TraceError: the jobs do not fit the machine (see `check_jobs`).
    """

    def __init__(self, laid_out: LaidOut, machine: Machine, policy: Policy) -> None:
        jobs = laid_out.jobs
        check_jobs(jobs, machine.processors)
        self.jobs: Jobs = jobs
        self.machine = machine
        self.processors = machine.processors
        self.policy: Policy = policy
        self._outside = 0
        capacity = machine.capacity()
        nodes, dimensions = capacity.shape
        table = np.full((len(jobs) + _SMALL, k.EACH + dimensions), -1, np.int64)
        table[: len(jobs), : NEED + 1] = jobs.table()
        table[: len(jobs), k.CHUNKS], table[: len(jobs), k.EACH :] = laid_out.chunks, laid_out.each
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[[k.POLICY, k.TRACE, k.NEXT_START]] = POLICIES[policy], len(jobs), NEVER
        scalars[[k.STEPS, k.SPARE_ROWS, k.SPARE_PLACES]] = 1, 4 * _SMALL - 1, _SMALL
        self._state = k.State(
            s=scalars,
            jobs=table,
            capacity=capacity,
            times=np.zeros(4 * _SMALL, np.int64),
            total=np.full(4 * _SMALL, machine.processors, np.int64),
            row=np.zeros(4 * _SMALL, np.int64),
            free=np.tile(capacity, (4 * _SMALL, 1, 1)),
            running=np.zeros((_SMALL, k.RUNNING_COLUMNS), np.int64),
            waiting=np.zeros((_SMALL, k.WAITING_COLUMNS), np.int64),
            nodes=np.zeros((_SMALL, nodes), np.int64),
            chunks=np.zeros((_SMALL, nodes), np.int64),
            held=np.zeros(_SMALL, np.int64),
            spare_rows=np.append(np.arange(1, 4 * _SMALL), 0),
            spare_places=np.arange(_SMALL),
            counts=np.zeros((2, nodes), np.int64),
        )

    def fork(self) -> NodeCluster:
        """A copy that goes its own way from here on."""
        twin = object.__new__(NodeCluster)
        twin.__dict__.update(self.__dict__)
        twin._state = k.State(*(array.copy() for array in self._state))
        return twin

    @property
    def now(self) -> int:
        return int(self._state.s[k.NOW])

    @property
    def changes(self) -> int:
        """How many starts and ends of jobs from outside there have been."""
        return int(self._state.s[k.CHANGES])

    def next_event(self) -> int | None:
        """When something happens next; None where nothing will."""
        t, coming = self._state, int(self._state.s[k.NEXT_JOB])
        submissions = t.jobs[coming : len(self.jobs), SUBMIT][:1].tolist()
        ends = self.running_rows()[:1, RUN_END].tolist()
        soonest = min([*submissions, *ends, int(t.s[k.NEXT_START])])
        return soonest if soonest < NEVER else None

    def advance(self, until: int) -> None:
        """Let everything up to and including second `until` happen.

        Raises:
            ValueError: that is in the past.
        """
        self._play(until, watch=False)
        self._state.s[k.NOW] = until

    def advance_to_change(self, until: int) -> bool:
        """Like `advance`, but stop after the second in which a job from outside starts or ends.

        Returns:
            Whether it stopped for that; `now` says when.
        """
        if self._play(until, watch=True):
            return True
        self._state.s[k.NOW] = until
        return False

    def finish(self) -> None:
        """Let everything happen."""
        self._play(NEVER - 1, watch=False)

    def submit(self, processors: int, tr: int, run: int | None = None, need: Need | None = None) -> int:
        """A job from outside arrives now.

        Args:
            processors: of all chunks together.
            tr: its time limit in seconds, at least 1; all that the scheduler knows.
            run: how long it will run; None: until its limit, unless `end` says otherwise.
            need: its chunks; None: single processors on any nodes.

        Raises:
            ValueError: the cluster could never run it.
        """
        asked = self._asked(self.now, processors, tr, tr if run is None else run, need)
        job = len(self.jobs) + self._outside
        if job == len(self._state.jobs):
            self._state = self._state._replace(jobs=doubled(self._state.jobs))
        self._state.jobs[job] = asked
        self._outside += 1
        self._make_room()
        k.enter(self._state, job)
        self._play(self.now, watch=False)
        return job

    def end(self, job: int, at: int) -> None:
        """Let a running job from outside end at a time of its limit's or before; may be now.

        Raises:
            KeyError: no such job from outside.
            ValueError: it does not run, or `at` is in the past or beyond its limit.
        """
        row = self._row(job)
        start, limit = int(row[START]), int(row[LIMIT])
        if start < 0 or row[END] >= 0:
            raise ValueError(f"job {job} does not run")
        if not self.now <= at <= start + limit:
            raise ValueError(f"job {job} cannot end at {at}: it is {self.now}, its limit is {start + limit}")
        running = self.running_rows()
        at_row = int(np.argmax(running[:, RUN_JOB] == job))
        order, place = running[at_row, [RUN_ORDER, k.RUN_PLACE]].tolist()
        k.remove(self._state, at_row)
        k.put(self._state, at, job, order, place)
        row[RUN] = at - start
        self._play(self.now, watch=False)

    def cancel(self, job: int) -> None:
        """End a job from outside now, or take it out of the queue; nothing where it has ended.

        Raises:
            KeyError: no such job from outside.
        """
        row = self._row(job)
        if row[END] >= 0:
            return
        if row[START] >= 0:
            self.end(job, self.now)
            return
        row[END] = self.now
        self._make_room()
        k.withdraw(self._state, int(np.argmax(self.waiting_rows()[:, W_JOB] == job)))
        self._play(self.now, watch=False)

    def reshape(self, job: int, processors: int, tr: int, need: Need | None = None) -> None:
        """Let a waiting job from outside ask for something else (see `submit`); it keeps its place.

        Raises:
            KeyError: no such job from outside.
            ValueError: it does not wait, or the cluster could never run it.
        """
        row = self._row(job)
        if row[START] >= 0 or row[END] >= 0:
            raise ValueError(f"job {job} does not wait")
        asked = self._asked(int(row[SUBMIT]), processors, tr, tr, need)
        self._make_room()
        k.reshape(self._state, int(np.argmax(self.waiting_rows()[:, W_JOB] == job)), asked)
        self._play(self.now, watch=False)

    def outside_job(self, job: int) -> OutsideJob:
        """Raises KeyError: no such job from outside."""
        row = self._row(job)
        submitted, _, tr, processors, started, ended = row[: k.CHUNKS].tolist()
        return OutsideJob(
            id=job,
            processors=processors,
            tr=tr,
            submitted=submitted,
            started=started if started >= 0 else None,
            ended=ended if ended >= 0 else None,
        )

    def starts(self) -> Array:
        """The starts of all jobs of the trace, -1 for those that have not."""
        starts: Array = self._state.jobs[: len(self.jobs), START].copy()
        return starts

    def profile(self) -> tuple[Array, Array]:
        """Times, the first of them now, and the processors of all nodes free from each on; the last for ever.

        Under conservative backfilling the reservations of waiting jobs are in it, under EASY only what
        runs.
        """
        k.roll(self._state)
        steps = int(self._state.s[k.STEPS])
        times, free = self._state.times[:steps], self._state.total[:steps]
        differs = np.diff(free, prepend=-1) != 0
        return times[differs], free[differs]

    def started_job(self, job: int) -> tuple[int, int, int]:
        """Start, time limit and processors of a job that runs now."""
        start, limit, need = self._state.jobs[job, [START, LIMIT, NEED]].tolist()
        return start, limit, need

    def running_rows(self) -> Array:
        """A view: the running jobs by their coming end; columns as in `kernels`."""
        return self._state.running[: self._state.s[k.RUNNING]]

    def waiting_rows(self) -> Array:
        """A view: the waiting jobs in the order of submission; columns as in `kernels`."""
        return self._state.waiting[: self._state.s[k.WAITING]]

    def need(self, job: int) -> Need:
        """What a job asks of the nodes."""
        chunks, processors, *memory = self._state.jobs[job, k.CHUNKS :].tolist()
        return Need(chunks=chunks, processors=processors, memory=memory[0] if memory else 0)

    def parts(self, job: int, place: int) -> tuple[Part, ...]:
        """What a job holds, or will hold, of each of its nodes; empty where that is not decided."""
        t, each = self._state, self.need(job)
        held = int(t.held[place])
        return tuple(
            Part(
                node=self.machine.nodes[node].name,
                processors=chunks * each.processors,
                memory=chunks * each.memory,
            )
            for node, chunks in zip(
                t.nodes[place, :held].tolist(), t.chunks[place, :held].tolist(), strict=True
            )
        )

    def planned_head(self) -> dict[int, tuple[float, tuple[Part, ...]]]:
        """Under EASY, the start and the nodes that the first waiting job gets if all run to their limits."""
        rows = self.waiting_rows()
        if not len(rows):
            return {}
        job, place = rows[0, [W_JOB, k.W_PLACE]].tolist()
        k.roll(self._state)
        start = k.earliest(self._state, job, NEVER)
        k.settle(self._state, job, place)
        parts = self.parts(job, place)
        self._state.held[place] = 0
        return {job: (float(start), parts)}

    def _asked(self, submitted: int, processors: int, tr: int, run: int, need: Need | None) -> Array:
        """The row of a job that waits. Raises ValueError: the cluster could never run it."""
        need = need or Need(chunks=processors, processors=1)
        if tr < 1 or not 0 <= run <= tr:
            raise ValueError(f"a job of {run} s with a limit of {tr} s")
        if need.chunks < 1 or need.processors < 1 or need.chunks * need.processors != processors:
            raise ValueError(f"{need.chunks} chunks of {need.processors} processors are not {processors}")
        if (most := self.machine.chunks(need)) < need.chunks:
            raise ValueError(
                f"{need.chunks} chunks of {need.processors} processors asked of nodes that hold {most}"
            )
        head = (submitted, run, tr, processors, -1, -1, need.chunks)
        columns = self._state.jobs.shape[1]
        return np.array([*head, need.processors, need.memory][:columns], np.int64)

    def _row(self, job: int) -> Array:
        if not len(self.jobs) <= job < len(self.jobs) + self._outside:
            raise KeyError(job)
        row: Array = self._state.jobs[job]
        return row

    def _play(self, until: int, *, watch: bool) -> bool:
        if until < self.now:
            raise ValueError(f"the clock is at {self.now} and does not go back to {until}")
        self._state.s[k.TOUCHED] = 0
        while k.advance(self._state, until, watch) == FULL:
            self._grow()
        return bool(self._state.s[k.TOUCHED])

    def _make_room(self) -> None:
        """For one more event."""
        while not k.has_room(self._state):
            self._grow()

    def _grow(self) -> None:
        """Twice as many steps and places."""
        t = self._state
        steps, places = len(t.times), len(t.held)
        kept = ("s", "jobs", "capacity", "counts")
        grown = {name: doubled(getattr(t, name)) for name in k.State._fields if name not in kept}
        self._state = t._replace(**grown)
        for spare, count, old in (
            ("spare_rows", k.SPARE_ROWS, steps),
            ("spare_places", k.SPARE_PLACES, places),
        ):
            free = int(t.s[count])
            getattr(self._state, spare)[free : free + old] = np.arange(old, 2 * old)
            t.s[count] += old
