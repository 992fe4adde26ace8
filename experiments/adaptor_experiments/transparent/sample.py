"""One submission time under one load: every bag by every strategy, from the same state of the cluster."""

from __future__ import annotations

from typing import Any

import msgspec

from adaptor.decisions.seen_nodes import SeenNodes
from adaptor_experiments.derose.sample import load
from adaptor_experiments.transparent.design import STRATEGIES, WATCHED, Piece, Strategy, submission
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.grid_job import GridResult
from adaptor_simulation.grid_run import Watched, run_grid_job
from adaptor_simulation.kernels import Array
from adaptor_simulation.places import Places
from adaptor_simulation.slowdown import Slowdowns
from adaptor_simulation.tasks.kernel_tasks import tasks_of
from adaptor_simulation.tasks.protocol import MakeTasks
from adaptor_simulation.what_if import LocalJobs

_FOLLOWED = 7 * 86400
"""Seconds after the bag for which the local jobs are followed: on a full machine some wait for months."""


class Outcome(Slowdowns, frozen=True, kw_only=True):
    """One bag by one strategy: a line of the results. Times in seconds, the rest in processor-seconds."""

    trace: str
    load: float
    """The factor of the interarrival times."""
    offered: float
    """The offered load that comes of it, as a share of the machine."""
    sample: int
    tasks: int
    mean: int
    strategy: str
    submitted: int
    turnaround: int
    work: int
    held: int
    """By pilots of formal requests."""
    requests: int
    used: int
    """Processor-seconds on donated nodes."""
    donated: int
    """Processor-seconds of tasks that finished there."""
    lost: int
    reclaims: int
    failed: int
    """Tasks."""
    local_jobs: int
    """Local jobs that waited or came while the bag was there."""
    later: int
    """Local jobs among them that started later than without the bag (`delays`)."""
    delay: int
    """Seconds by which they did, in sum."""
    change: int
    """Seconds by which all started later, less those by which they started earlier."""


def run_piece(piece: Piece, make: MakeTasks = tasks_of) -> list[Outcome]:
    """Every bag by every strategy.

    Args:
        make: how the bags on donated processors are simulated.

    Raises:
        TraceError: the trace cannot be read or leaves no job.
        ReplayError: a task fits into no request.
    """
    processors = piece.workload.processors
    jobs = load(piece.path, processors).stretched(piece.load)
    at = submission(jobs, piece)
    base = cluster_of_processors(jobs, processors, "conservative")
    seen, local = watched(base, at), LocalJobs(base)
    outcomes = []
    for kind in piece.settings.kinds:
        runtimes = kind.runtimes(piece.settings.seed, piece.sample)
        for strategy in STRATEGIES:
            cluster = base.fork()
            result = _run(piece, cluster, seen, runtimes, strategy, make)
            outcomes.append(
                Outcome(
                    trace=piece.workload.key,
                    load=piece.load,
                    offered=jobs.offered_load(processors),
                    sample=piece.sample,
                    tasks=kind.tasks,
                    mean=kind.mean,
                    strategy=strategy,
                    submitted=at,
                    work=int(runtimes.sum()),
                    **_figures(result),
                    **delays(local, cluster, at + result.turnaround),
                )
            )
    return outcomes


def watched(cluster: Cluster, at: int) -> Watched:
    """The cluster goes on to a second, its nodes watched for some time before."""
    cluster.advance(max(0, at - WATCHED))
    places, seen = Places(cluster), SeenNodes()
    seen.looked(places.reports(), float(cluster.now))
    while (coming := cluster.next_event()) is not None and coming <= at:
        cluster.advance(coming)
        if places.look():
            seen.looked(places.reports(), float(coming))
    cluster.advance(at)
    return Watched(places, seen)


def _run(
    piece: Piece, cluster: Cluster, seen: Watched, runtimes: Array, strategy: Strategy, make: MakeTasks
) -> GridResult:
    settings = piece.settings
    if strategy == "static" or strategy == "adaptive":
        return run_grid_job(cluster, runtimes, settings.terms(cluster.processors, strategy))
    terms = msgspec.structs.replace(
        settings.terms(cluster.processors, "adaptive"),
        donation=settings.rules(strategy),
        allocation="mixed" if strategy == "mixed" else "transparent",
    )
    return run_grid_job(cluster, runtimes, terms, make, watched=seen.fork(cluster))


def _figures(result: GridResult) -> dict[str, int]:
    donated = result.donated
    return {
        "turnaround": result.turnaround,
        "held": result.held,
        "requests": len(result.requests),
        "used": donated.used,
        "donated": donated.work,
        "lost": donated.lost,
        "reclaims": donated.reclaims,
        "failed": result.failed,
    }


def delays(local: LocalJobs, cluster: Cluster, end: int) -> dict[str, Any]:
    """Delays and slowdowns of the local jobs that waited or came until the bag's end."""
    jobs = local.followed(cluster, max(cluster.now, end + _FOLLOWED), came=end)
    shift = jobs.with_us - jobs.without
    return {
        "local_jobs": len(shift),
        "later": int((shift > 0).sum()),
        "delay": int(shift[shift > 0].sum()),
        "change": int(shift.sum()),
        **msgspec.structs.asdict(jobs.slowdowns),
    }
