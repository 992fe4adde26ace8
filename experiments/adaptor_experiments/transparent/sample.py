"""One submission time under one load: every bag by every strategy, from the same state of the cluster."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec
import numpy as np

from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import Allocation
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation.driver import DonationResult, run_donation
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.driver import run_grid_job
from adaptor.simulation.jobs import Jobs
from adaptor.simulation.kernels import Array
from adaptor.simulation.tasks.kernel_tasks import tasks_of
from adaptor.simulation.tasks.protocol import MakeTasks
from adaptor_experiments.derose.design import JobType
from adaptor_experiments.derose.sample import load
from adaptor_experiments.transparent.design import (
    STRATEGIES,
    WATCHED,
    Piece,
    Strategy,
    submission,
)

_FOLLOWED = 7 * 86400
"""Seconds after the bag for which the local jobs are followed: on a full machine some wait for months."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
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
    """Of donated processors."""
    donated: int
    """Of the runtimes of tasks that finished there."""
    lost: int
    reclaims: int
    failed: int
    """Tasks."""
    local_jobs: int
    """That waited or came while the bag was there."""
    later: int
    """Of these, those that started later than without the bag (see `delays`)."""
    delay: int
    """Seconds by which they did, in sum."""
    change: int
    """Seconds by which all started later, less those by which they started earlier."""


@functools.lru_cache(maxsize=9)
def trace(path: Path, processors: int, factor: float) -> tuple[Jobs, Array]:
    """The jobs under a load, and when each starts without us.

    Raises:
        TraceError: the trace cannot be read or leaves no job.
    """
    jobs = load(path, processors).stretched(factor)
    alone = Simulation(jobs, processors, "conservative")
    alone.finish()
    return jobs, alone.starts()


def run_piece(piece: Piece, make: MakeTasks = tasks_of) -> list[Outcome]:
    """Every bag by every strategy.

    Args:
        make: how the bags on donated processors are simulated.

    Raises:
        TraceError: the trace cannot be read or leaves no job.
        ReplayError: a task fits into no request.
    """
    processors = piece.workload.processors
    jobs, untouched = trace(piece.path, processors, piece.load)
    at = submission(jobs, piece)
    place = watched(Simulation(jobs, processors, "conservative"), at)
    outcomes = []
    for kind in piece.settings.kinds:
        runtimes = kind.runtimes(piece.settings.seed, piece.sample)
        for strategy in STRATEGIES:
            cluster = place.cluster.fork()
            result = _run(piece, place.fork(cluster), runtimes, strategy, make)
            outcomes.append(
                Outcome(
                    trace=piece.workload.key,
                    load=piece.load,
                    offered=jobs.offered_load(processors),
                    sample=piece.sample,
                    **_kind(kind),
                    strategy=strategy,
                    submitted=at,
                    work=int(runtimes.sum()),
                    **msgspec.structs.asdict(result),
                    **delays(place.cluster, cluster, untouched, at + result.turnaround),
                )
            )
    return outcomes


def watched(cluster: Simulation, at: int) -> Processors[Simulation]:
    """The cluster at a second, its idle periods seen for some time before."""
    cluster.advance(max(0, at - WATCHED))
    place = Processors(cluster, IdleLearner())
    while (coming := cluster.next_event()) is not None and coming <= at:
        cluster.advance(coming)
        place.watch()
    cluster.advance(at)
    place.tell()
    return place


def _run(
    piece: Piece, place: Processors[Simulation], runtimes: Array, strategy: Strategy, make: MakeTasks
) -> DonationResult:
    settings, processors = piece.settings, piece.workload.processors
    if strategy != "static" and strategy != "adaptive":
        terms, rules = settings.terms(processors, "adaptive"), settings.rules(strategy)
        allocation: Allocation = "mixed" if strategy == "mixed" else "transparent"
        return run_donation(place, runtimes, terms, rules, allocation, make)
    result = run_grid_job(place.cluster, runtimes, settings.terms(processors, strategy))
    return DonationResult(
        turnaround=result.turnaround,
        failed=0,
        used=0,
        donated=0,
        lost=0,
        reclaims=0,
        held=result.held,
        requests=len(result.requests),
    )


def delays(base: Simulation, cluster: Simulation, untouched: Array, until: int) -> dict[str, int]:
    """What became of the local jobs that waited or came until a second, against the untouched schedule.

    They are followed for a week; one that still waits then counts as if it started at that instant.
    """
    there = np.flatnonzero((base.starts() < 0) & (base.jobs.submit <= until))
    last = max(cluster.now, until + _FOLLOWED)
    cluster.advance(last)
    starts = cluster.starts()[there]
    shift = np.where(starts < 0, last, np.minimum(starts, last)) - np.minimum(untouched[there], last)
    return {
        "local_jobs": len(there),
        "later": int((shift > 0).sum()),
        "delay": int(shift[shift > 0].sum()),
        "change": int(shift.sum()),
    }


def _kind(kind: JobType) -> dict[str, int]:
    return {"tasks": kind.tasks, "mean": kind.mean}
