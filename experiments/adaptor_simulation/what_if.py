"""One bag on this queue, and the local jobs with it and without it.

At many instants: whether free slots that the planner finds are there, with and without nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_job import GridResult, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Seconds
from adaptor_simulation.kernels import NEVER, Array
from adaptor_simulation.slowdown import Slowdowns, mean_slowdown
from adaptor_simulation.yardstick import Yardstick

EVER = NEVER - 1  # until all have started


class FollowedJobs(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Local jobs with a bag and without it, in the order of submission; int64, seconds."""

    submit: Array
    run: Array
    processors: Array
    without: Array
    """Starts without the bag."""
    with_us: Array

    @property
    def added_wait(self) -> int:
        """By which they wait longer in all, often below 0."""
        return int((self.with_us - self.without).sum())

    @property
    def slowdowns(self) -> Slowdowns:
        """Their mean bounded slowdowns with the bag and without it."""
        waits = self.with_us - self.submit, self.without - self.submit
        found = [mean_slowdown(wait, self.run, each) for each in (1, self.processors) for wait in waits]
        return Slowdowns(**dict(zip(Slowdowns.__struct_fields__, found, strict=True)))


class LocalJobs:
    """Jobs of the trace that had not started when a bag came, in the order of submission."""

    def __init__(self, base: Cluster) -> None:
        """`base`: the cluster at that instant, without us; it must not move any more."""
        self._alone = base.fork()
        starts = base.starts()
        waiting = np.flatnonzero(starts < 0)
        self._first = int(waiting[0]) if len(waiting) else len(starts)
        self._open = starts[self._first :] < 0

    def followed(self, cluster: Cluster, until: int, came: int = EVER) -> FollowedJobs:
        """The jobs that came by `came`.

        They are followed until `until`: one that still waits then counts as if it started at that instant.

        Args:
            cluster: with the bag, whose last request is over; its clock moves on.
        """
        here = self._open.copy()
        submit = cluster.jobs.submit[self._first :]
        here[np.searchsorted(submit, came, side="right") :] = False
        both = []
        for each in (self._alone, cluster):
            each.advance(max(each.now, until))
            starts = each.starts(self._first)[here]
            both.append(np.where(starts < 0, until, np.minimum(starts, until)))
        without, with_us = both
        run, processors = (each[self._first :][here] for each in (cluster.jobs.run, cluster.jobs.processors))
        return FollowedJobs(
            submit=submit[here], run=run, processors=processors, without=without, with_us=with_us
        )


class LocalWaits(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of the trace that had not started when the bag came; seconds."""

    jobs: int
    mean_without: float
    mean_with: float
    delayed: int
    """Jobs that start later with us than without."""
    advanced: int
    """Jobs that start earlier: backfilling is no order that one could only lose in."""
    largest_delay: int


class WhatIf(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A bag by one heuristic."""

    heuristic: str
    sees_nodes: bool
    """Whether the planner sees the nodes of the cluster, if it has any."""
    result: GridResult
    bound: int
    waits: LocalWaits
    starts: Seconds
    """Starts of the trace's jobs, with the bag."""


def what_if(base: Cluster, at: int, runtimes: Array, every: list[GridTerms]) -> list[WhatIf]:
    """The bag, submitted at the end of second `at`, on each of these terms; the cluster's clock moves on.

    Raises:
        ReplayError: the bag can never be finished.
    """
    base.advance(at)
    yardstick, local = Yardstick(base), LocalJobs(base)
    return [_one(base, yardstick, local, runtimes, terms) for terms in every]


def _one(base: Cluster, yardstick: Yardstick, local: LocalJobs, runtimes: Array, terms: GridTerms) -> WhatIf:
    limits = terms.rules.limits
    most = min(base.processors, limits.max_pending_requests * limits.max_proc)
    cluster = base.fork()
    result = run_grid_job(cluster, runtimes, terms)
    waits = _waits(local.followed(cluster, EVER))
    return WhatIf(
        heuristic=terms.heuristic,
        sees_nodes=terms.sees_nodes,
        result=result,
        bound=yardstick.bound(runtimes, most, terms.task.processors),
        waits=waits,
        starts=cluster.starts(),
    )


def _waits(jobs: FollowedJobs) -> LocalWaits:
    delay = jobs.with_us - jobs.without
    count = max(1, len(delay))
    return LocalWaits(
        jobs=len(delay),
        mean_without=float(np.sum(jobs.without - jobs.submit) / count),
        mean_with=float(np.sum(jobs.with_us - jobs.submit) / count),
        delayed=int((delay > 0).sum()),
        advanced=int((delay < 0).sum()),
        largest_delay=int(delay.max(initial=0)),
    )


TWO_CYCLES = 60  # seconds of two scheduling cycles, by Slurm's default `bf_interval` of 30 s


class HolesFound(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of all bags on the same terms."""

    sees_nodes: bool
    """Whether the planner sees the nodes of the cluster, if it has any."""
    bags: int
    requests: int
    promised: int
    """Requests made for a free slot that was there at once, as the planner saw it."""
    started: int
    """Requests among them that started within `TWO_CYCLES`."""
    turnarounds: tuple[int, ...]
    """Turnaround of each bag, in seconds."""

    @property
    def mean_turnaround(self) -> float:
        return sum(self.turnarounds) / len(self.turnarounds)


def find_holes(
    cluster: Cluster, instants: Iterable[int], runtimes: Array, every: Sequence[GridTerms]
) -> list[HolesFound]:
    """Run the bag at each of these seconds, on each of these terms; the cluster's clock moves on.

    Each bag is alone with the jobs of the trace.

    Raises:
        ReplayError: the bag can never be finished.
        ValueError: there is no instant, or one is in the past.
    """
    results: list[list[GridResult]] = [[] for _ in every]
    for at in sorted(instants):
        cluster.advance(at)
        for terms, done in zip(every, results, strict=True):
            done.append(run_grid_job(cluster.fork(), runtimes, terms))
    if not results or not all(results):
        raise ValueError("no bag was run")
    return [_told(terms, done) for terms, done in zip(every, results, strict=True)]


def _told(terms: GridTerms, done: list[GridResult]) -> HolesFound:
    holes = [result.holes(TWO_CYCLES) for result in done]
    return HolesFound(
        sees_nodes=terms.sees_nodes,
        bags=len(done),
        requests=sum(len(result.requests) for result in done),
        promised=sum(promised for promised, _ in holes),
        started=sum(started for _, started in holes),
        turnarounds=tuple(result.turnaround for result in done),
    )
