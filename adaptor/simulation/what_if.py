"""What would a bag meet on this queue, and what would the queue meet: one bag, with and without us."""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor.simulation.cluster import Cluster
from adaptor.simulation.grid_job import GridResult, GridTerms
from adaptor.simulation.grid_run import run_grid_job
from adaptor.simulation.jobs import Seconds
from adaptor.simulation.kernels import Array
from adaptor.simulation.local_jobs import EVER, LocalJobs
from adaptor.simulation.yardstick import Yardstick


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
    """See `GridTerms`."""
    result: GridResult
    bound: int
    waits: LocalWaits
    starts: Seconds
    """Of the trace's jobs, with the bag."""


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
    waits = _waits(*local.starts(cluster, EVER))
    return WhatIf(
        heuristic=terms.heuristic,
        sees_nodes=terms.sees_nodes,
        result=result,
        bound=yardstick.bound(runtimes, most, terms.task.processors),
        waits=waits,
        starts=cluster.starts(),
    )


def _waits(submit: Array, without: Array, with_us: Array) -> LocalWaits:
    delay = with_us - without
    count = max(1, len(delay))
    return LocalWaits(
        jobs=len(delay),
        mean_without=float(np.sum(without - submit) / count),
        mean_with=float(np.sum(with_us - submit) / count),
        delayed=int((delay > 0).sum()),
        advanced=int((delay < 0).sum()),
        largest_delay=int(delay.max(initial=0)),
    )
