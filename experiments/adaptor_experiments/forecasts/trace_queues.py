"""A simulated site that begins with the queue of a trace at an instant, and goes on as the trace does."""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor.crafting.futures.run_shares import MOST, RunShares
from adaptor_simulation import kernels as k
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.trace_run import LoadedTrace

_AHEAD = 5 * 86400  # seconds of the trace after the instant that are simulated, at most


class QueueAt(msgspec.Struct, frozen=True, eq=False):
    """The queue that a bag meets."""

    jobs: Jobs
    """Jobs that run then, with what is left of them; those that wait; and those that come."""
    shares: RunShares
    """Knowledge of an observer of the queue by then."""
    waiting: int
    free: int
    """Processors that no job held."""
    instant: int = 0
    """Seconds of the trace."""


def queues_of(loaded: LoadedTrace, instants: int, seed: int) -> list[QueueAt]:
    """The queue of the trace's machine at a number of instants, drawn in its middle."""
    jobs = loaded.jobs
    cluster = cluster_of_processors(jobs, loaded.processors, "conservative")
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(first + (last - first) // 10, last - (last - first) // 10, instants))
    found = []
    for at in times.tolist():
        cluster.advance(max(at, cluster.now))
        found.append(_queue_at(cluster))
    return found


def _queue_at(cluster: Cluster) -> QueueAt:
    jobs, now = cluster.jobs, cluster.now
    running = cluster.running_rows()[:, k.JOB].tolist()
    waiting = cluster.waiting_rows()[:, k.JOB].tolist()
    coming = np.flatnonzero((jobs.submit > now) & (jobs.submit < now + _AHEAD)).tolist()
    starts = cluster.starts()
    left = jobs.run.copy()
    limit = jobs.estimate.copy()
    for job in running:
        left[job] = max(1, starts[job] + jobs.run[job] - now)
        limit[job] = max(left[job], starts[job] + jobs.estimate[job] - now)
    rows = np.array([*running, *waiting, *coming], np.int64)
    own = Jobs(
        number=jobs.number[rows],
        submit=np.maximum(0, jobs.submit[rows] - now),
        run=left[rows],
        estimate=limit[rows],
        processors=jobs.processors[rows],
    )
    ends = starts + jobs.run
    ended = np.flatnonzero((starts >= 0) & (ends <= now))
    newest = ended[np.argsort(ends[ended])][-MOST:]
    known = (jobs.run[newest] / jobs.estimate[newest]).tolist()
    limits = {str(place): (float(jobs.estimate[job]), float(limit[job])) for place, job in enumerate(running)}
    held = int(jobs.processors[running].sum()) if running else 0
    return QueueAt(own, RunShares.of(known, limits, 0.0), len(waiting), cluster.processors - held, now)
