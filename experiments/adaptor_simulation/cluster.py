"""A simulated space-shared cluster that can be forked: it replays a trace and takes jobs from outside."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from adaptor.resources import Need, Part
from adaptor_simulation import kernels as k
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs, check_jobs
from adaptor_simulation.kernels import Array
from adaptor_simulation.machine import LaidOut, on_one_node
from adaptor_simulation.queue_rules import BY_SUBMISSION, QueueRules

Policy = Literal["conservative", "easy"]

POLICIES: dict[Policy, int] = {"conservative": k.CONSERVATIVE, "easy": k.EASY}
_SMALL = 64  # rows to begin with


class OutsideJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was submitted from outside the trace, in seconds of the trace."""

    id: int
    processors: int
    tr: int
    submitted: int
    started: int | None
    """None while it waits, and for ever where it was cancelled before."""
    ended: int | None


class Cluster:
    """Nodes under a policy, with the jobs of a trace; time is whole seconds.

    The driver acts at the end of a second: after `advance(t)` all that the trace does at t has
    happened, and what is submitted then comes last in that second (it may still start in it). Jobs of
    the trace are known by their index, jobs from outside by the numbers that follow.

    A fork shares nothing that changes with its origin and costs a few small copies of memory, so that the way
    to an instant is simulated once, whatever is tried there.

    Raises:
        TraceError: the jobs do not fit the machine (see `check_jobs`), or have no users for a fair share.
        ValueError: the policy is unknown.
    """

    def __init__(self, laid_out: LaidOut, policy: Policy, rules: QueueRules = BY_SUBMISSION) -> None:
        if policy not in POLICIES:
            raise ValueError(f"{policy!r} is no scheduling policy; there are {', '.join(POLICIES)}")
        jobs, machine = laid_out.jobs, laid_out.machine
        check_jobs(jobs, machine.processors)
        self.jobs: Jobs = jobs
        self.machine = machine
        self.processors = machine.processors
        self.policy: Policy = policy
        self.rules = rules
        self._parent: Cluster | None = None
        self._first_own = 0  # jobs before it had started when this was forked
        self._outside = 0
        capacity = machine.capacity()
        nodes, dimensions = capacity.shape
        trace = np.full((len(jobs), k.JOB_COLUMNS), -1, np.int64)
        trace[:, : k.NEED + 1] = jobs.table()
        trace[:, k.CHUNKS], trace[:, k.EACH : k.EACH + dimensions] = laid_out.chunks, laid_out.each
        of_users, users = _by_user(jobs, rules)
        trace[:, k.USER] = of_users
        self._user = users  # of the jobs from outside
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[[k.POLICY, k.NEXT_START, k.STEPS]] = POLICIES[policy], k.NEVER, 1
        _take_rules(scalars, rules)
        live = np.zeros((_SMALL, k.LIVE_COLUMNS), np.int64)
        live[:, k.PLACE] = np.arange(_SMALL)
        steps = np.zeros((3, 2 * _SMALL + 8), np.int64)
        steps[k.TOTAL, 0], steps[k.ROW] = machine.processors, np.arange(steps.shape[1])
        self._state = k.State(
            s=scalars,
            trace=trace,
            starts=np.full(len(jobs), -1, np.int64),
            outside=np.zeros((4, k.JOB_COLUMNS), np.int64),
            live=live,
            places=np.tile(np.arange(_SMALL, dtype=np.uint64), (3, 1)),
            chunks=np.zeros((_SMALL, nodes), np.int64),
            steps=steps,
            free=np.tile(capacity, (steps.shape[1], 1, 1)),
            counts=np.zeros((2, nodes), np.int64),
            usage=np.zeros(users + 1),
            marks=np.zeros(users + 1, np.int64),
        )

    def fork(self) -> Cluster:
        """A copy that goes its own way from here on."""
        twin = object.__new__(Cluster)
        twin.__dict__.update(self.__dict__)
        ours = self._of_trace(self.waiting_rows()[:, k.JOB])
        entered = int(self._state.s[k.NEXT_JOB])
        first = int(ours.min()) if len(ours) else entered
        running = self._of_trace(self.running_rows()[:, k.JOB])
        # Starts of jobs that ended before stay with the parent, where they change no more.
        starts = np.empty_like(self._state.starts)
        starts[first:entered] = self._state.starts[first:entered]
        starts[running] = self._state.starts[running]
        shared: dict[str, Any] = {"trace": self._state.trace, "starts": starts}
        twin._parent, twin._first_own = self, first
        twin._state = k.State(
            **{
                name: shared[name] if name in shared else array.copy()
                for name, array in self._state._asdict().items()
            }
        )
        return twin

    @property
    def now(self) -> int:
        return int(self._state.s[k.NOW])

    @property
    def changes(self) -> int:
        """Number of starts and ends of jobs from outside so far."""
        return int(self._state.s[k.CHANGES])

    def next_event(self) -> int | None:
        """Time of the next event; None: there will be none."""
        coming = self._state.trace[self._state.s[k.NEXT_JOB] :, k.SUBMIT][:1]
        times = [*coming.tolist(), *self.running_rows()[:1, k.END].tolist()]
        soonest = min([*times, int(self._state.s[k.NEXT_START])])
        return soonest if soonest < k.NEVER else None

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
        self._play(k.NEVER - 1, watch=False)

    def submit(self, processors: int, tr: int, need: Need | None = None) -> int:
        """A job from outside arrives now. It runs until its limit if it is not cancelled before.

        Args:
            processors: of all chunks together.
            tr: its time limit in seconds, at least 1.
            need: its chunks; None: single processors on any nodes.

        Raises:
            ValueError: the cluster could never run it.
        """
        asked = self._asked(self.now, processors, tr, need)
        if self._outside == len(self._state.outside):
            self._state = self._state._replace(outside=_doubled(self._state.outside))
        self._state.outside[self._outside] = asked
        job = len(self.jobs) + self._outside
        self._outside += 1
        self._ask(k.SUBMISSION, job)
        return job

    def cancel(self, job: int) -> None:
        """End a job from outside now, or take it out of the queue; nothing where it has ended.

        Raises:
            KeyError: no such job from outside.
        """
        row = self._from_outside(job)
        if row[k.END] >= 0:
            return
        if row[k.START] >= 0:
            self._ask(k.CUT, self._listed(job, k.RUNS))
        else:
            row[k.END] = self.now
            self._ask(k.WITHDRAWAL, self._listed(job, k.WAITS))

    def reshape(self, job: int, processors: int, tr: int, need: Need | None = None) -> None:
        """Let a waiting job from outside ask for something else (see `submit`); it keeps its place.

        Raises:
            KeyError: no such job from outside.
            ValueError: it does not wait, or the cluster could never run it.
        """
        row = self._from_outside(job)
        if row[k.START] >= 0 or row[k.END] >= 0:
            raise ValueError(f"job {job} does not wait")
        row[:] = self._asked(int(row[k.SUBMIT]), processors, tr, need)
        self._ask(k.RESHAPING, self._listed(job, k.WAITS))

    def outside_job(self, job: int) -> OutsideJob:
        """Raises KeyError: no such job from outside."""
        row = self._from_outside(job)
        submitted, _, tr, processors, started, ended = row[: k.CHUNKS].tolist()
        return OutsideJob(
            id=job,
            processors=processors,
            tr=tr,
            submitted=submitted,
            started=started if started >= 0 else None,
            ended=ended if ended >= 0 else None,
        )

    def outside_starts(self) -> Array:
        """Starts of the jobs from outside, in the order of their submission; -1: not yet."""
        return self._state.outside[: self._outside, k.START]

    def starts(self, first: int = 0) -> Array:
        """The starts of the jobs of the trace from this one on, -1 for those that have not started."""
        starts: Array = self._state.starts[first:].copy()
        starts[max(0, int(self._state.s[k.NEXT_JOB]) - first) :] = -1
        if self._parent is not None and first < self._first_own:
            others = self._first_own - first
            starts[:others] = self._parent.starts(first)[:others]
        return starts

    def profile(self) -> tuple[Array, Array]:
        """Times, the first of them now, and the processors of all nodes free from each on; the last for ever.

        Under conservative backfilling the reservations of waiting jobs are in it, under EASY only what
        runs.
        """
        t = self._state
        k.roll(t.s, t.steps)
        times, free = t.steps[: k.ROW, : t.s[k.STEPS]][:, ::-1]
        differs = np.concatenate(([True], free[1:] != free[:-1]))
        return times[differs], free[differs]

    def running_rows(self) -> Array:
        """(n, LIVE_COLUMNS): the running jobs by their coming end; columns as in `kernels`."""
        return self._state.live[self._places(k.RUNS)[::-1]]

    def waiting_rows(self) -> Array:
        """(n, LIVE_COLUMNS): the waiting jobs in the order of the queue; columns as in `kernels`."""
        return self._state.live[self._places(k.WAITS)]

    def need(self, place: int) -> Need:
        """Need of the job at this place."""
        chunks, processors, memory = self._state.live[place, k.CHUNKS : k.USER].tolist()
        return Need(chunks=chunks, processors=processors, memory=max(0, memory))

    def parts(self, place: int) -> tuple[Part, ...]:
        """Parts that the job at this place holds, or will hold, of each node; empty if that is not
        decided."""
        each, held = self.need(place), self._state.chunks[place]
        nodes = np.flatnonzero(held)
        return tuple(
            Part(
                node=self.machine.nodes[node].name,
                processors=chunks * each.processors,
                memory=chunks * each.memory,
            )
            for node, chunks in zip(nodes.tolist(), held[nodes].tolist(), strict=True)
        )

    def planned_head(self) -> dict[int, tuple[float, tuple[Part, ...]]]:
        """Under EASY, the start and the nodes that the first waiting job gets if all run to their limits."""
        rows = self.waiting_rows()
        if not len(rows):
            return {}
        job, place = int(rows[0, k.JOB]), np.uint64(rows[0, k.PLACE])
        k.roll(self._state.s, self._state.steps)
        start = k.earliest(self._state, place, k.NEVER)
        k.settle(self._state, place)
        parts = self.parts(int(place))
        k.unsettle(self._state, place)
        return {job: (float(start), parts)}

    def _asked(self, submitted: int, processors: int, tr: int, need: Need | None) -> Array:
        """The row of a job that waits. Raises ValueError: the cluster could never run it."""
        need = need or Need(chunks=processors, processors=1)
        if tr < 1:
            raise ValueError(f"a job with a limit of {tr} s")
        if need.chunks < 1 or need.processors < 1 or need.chunks * need.processors != processors:
            raise ValueError(f"{need.chunks} chunks of {need.processors} processors are not {processors}")
        if (most := self.machine.chunks(need)) < need.chunks:
            raise ValueError(
                f"{need.chunks} chunks of {need.processors} processors asked of nodes that hold {most}"
            )
        memory = need.memory if self.machine.by_memory else -1
        row = (submitted, tr, tr, processors, -1, -1, need.chunks, need.processors, memory, self._user)
        return np.array(row, np.int64)

    def _from_outside(self, job: int) -> Array:
        """A view of its row. Raises KeyError: no such job from outside."""
        index = job - len(self.jobs)
        if not 0 <= index < self._outside:
            raise KeyError(job)
        row: Array = self._state.outside[index]
        return row

    def _places(self, which: int) -> k.Indices:
        """A view: the places of the waiting or of the running jobs, as in `kernels`."""
        count = self._state.s[k.WAITING if which == k.WAITS else k.RUNNING]
        places: k.Indices = self._state.places[which, :count]
        return places

    def _listed(self, job: int, which: int) -> int:
        """The row of a job among the waiting or the running ones."""
        return int(np.argmax(self._state.live[self._places(which), k.JOB] == job))

    def _of_trace(self, ids: Array) -> Array:
        return ids[ids < len(self.jobs)]

    def _ask(self, event: int, which: int) -> None:
        """Let something happen now, with all that follows in this second."""
        self._state.s[[k.ASKED, k.WHICH]] = event, which
        self._play(self.now, watch=False)

    def _play(self, until: int, *, watch: bool) -> bool:
        if until < self.now:
            raise ValueError(f"the clock is at {self.now} and does not go back to {until}")
        self._state.s[k.TOUCHED] = 0
        while k.advance(self._state, until, watch) == k.FULL:
            self._grow()
        return bool(self._state.s[k.TOUCHED])

    def _grow(self) -> None:
        """Twice as many steps and places."""
        t = self._state
        steps, places = t.steps.shape[1], len(t.live)
        grown: dict[str, Any] = {name: _doubled(getattr(t, name)) for name in ("live", "chunks", "free")}
        grown |= {name: _doubled(getattr(t, name).T).T.copy() for name in ("places", "steps")}
        spare = places - int(t.s[k.WAITING] + t.s[k.RUNNING])
        fresh = np.arange(places, 2 * places)
        grown["live"][places:, k.PLACE] = grown["places"][k.SPARE, spare : spare + places] = fresh
        grown["steps"][k.ROW, steps:] = np.arange(steps, 2 * steps)
        self._state = t._replace(**grown)


def cluster_of_processors(
    jobs: Jobs, processors: int, policy: Policy, rules: QueueRules = BY_SUBMISSION
) -> Cluster:
    """A cluster that counts processors and does not say where jobs run. Raises as `Cluster`."""
    return Cluster(on_one_node(jobs, processors), policy, rules)


def _by_user(jobs: Jobs, rules: QueueRules) -> tuple[Array, int]:
    """The number of each job's user, and how many users there are; without users of jobs, one has all.

    Raises:
        TraceError: the rules need to know the users.
    """
    if jobs.user is None:
        if len(jobs) and (rules.fair_share or rules.per_user):
            raise TraceError("the trace does not say whose jobs they are, so there is no share of a user")
        return np.zeros(len(jobs), np.int64), 1
    known, numbers = np.unique(jobs.user, return_inverse=True)
    return numbers.astype(np.int64), len(known)


def _take_rules(scalars: Array, rules: QueueRules) -> None:
    scalars[[k.PER_USER, k.DEPTH]] = rules.per_user or k.NEVER, rules.depth or k.NEVER
    if (share := rules.fair_share) is not None:
        scalars[[k.HALF_LIFE, k.PERIOD]] = share.half_life, share.period
        scalars[[k.WEIGHT, k.AGE_WEIGHT, k.LONGEST_AGE]] = share.weight, share.age_weight, share.longest_age


def _doubled(table: Array) -> Array:
    """Twice as many rows, the new ones empty."""
    return np.concatenate([table, np.zeros_like(table)])
