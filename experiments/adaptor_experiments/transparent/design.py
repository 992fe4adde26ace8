"""Traces, loads, bags and strategies; one submission time under one load: every bag by every strategy."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.heuristics import HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.situation import DonationRules
from adaptor.model import Limits
from adaptor_experiments.derose.design import WORKLOADS, JobType, Workload, trace_files
from adaptor_experiments.derose.sample import load
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridResult, GridTerms
from adaptor_simulation.grid_run import Watched, run_grid_job
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import Array
from adaptor_simulation.places import Places
from adaptor_simulation.slowdown import Slowdowns
from adaptor_simulation.what_if import LocalJobs

Strategy = Literal["transparent", "all-idle", "static", "adaptive", "mixed"]
"""`all-idle` is transparent allocation by the paper's own rule (`donation: choose: all`); `transparent` and
`mixed` use the nodes on which tasks are likely to finish."""
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
Donated = Literal["all-idle", "transparent"]
DONATED: tuple[Donated, ...] = get_args(Donated)
"""Strategies without a formal request: by the paper's own rule, and by ours."""
MACHINES = tuple(each for each in WORKLOADS if each.key != "ctc-sp2-338")
LOADS = (1.3, 1.0, 0.7)  # factors of the interarrival times: the higher, the emptier the machine
WATCHED = 30 * 86400  # seconds before the submission for which the idle periods of the site were seen
_HETEROGENEITY: Literal[2] = 2
"""Runtimes are uniform between half and three halves of the mean (De Rose, Table 2)."""


def prices(donated: float) -> Tariff:
    """Credits a processor-hour: 1 in formal requests, `donated` on donated nodes.

    They weigh what was simulated, in which no decision asks for them.
    """
    return Tariff(price_explicit=1.0, price_donated=donated)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All on which a result depends, except the trace, the load and the number of the sample."""

    seed: int = 1
    tasks: tuple[int, ...] = (100, 1000, 10_000)
    means: tuple[int, ...] = (100, 1000, 10_000)
    loads: tuple[float, ...] = LOADS
    max_pending: int = 4
    max_tr: int = 64_800
    initial_tr: float = 3600.0
    growth_factor: int = 2
    donation: DonationRules = DonationRules()

    @property
    def kinds(self) -> list[JobType]:
        return [JobType(tasks, mean, _HETEROGENEITY) for tasks in self.tasks for mean in self.means]

    def rules(self, strategy: Strategy) -> DonationRules:
        return msgspec.structs.replace(
            self.donation, choose="all" if strategy == "all-idle" else self.donation.choose
        )

    def terms(self, processors: int, heuristic: HeuristicName) -> GridTerms:
        limits = Limits(max_pending_requests=self.max_pending, max_proc=processors, max_tr=self.max_tr)
        return GridTerms(
            rules=SiteRules(limits=limits),
            heuristic=heuristic,
            workers=INSTANT_WORKERS,
            initial_tr=self.initial_tr,
            growth_factor=self.growth_factor,
        )


class Piece(msgspec.Struct, frozen=True):
    """One submission time on one trace under one load: what a process does at a time."""

    workload: Workload
    path: Path
    load: float
    sample: int
    settings: Settings

    @property
    def name(self) -> str:
        return f"{self.workload.key}-x{self.load:g}-{self.sample:04}"


def pieces(traces: Path, settings: Settings, samples: int) -> list[Piece]:
    """All of the experiment, those of all traces and loads in turn.

    Raises:
        ReplayError: a trace is not there.
    """
    paths = trace_files(MACHINES, traces)
    return [
        Piece(machine, path, load, sample, settings)
        for sample in range(samples)
        for machine, path in paths.items()
        for load in settings.loads
    ]


def submission(jobs: Jobs, piece: Piece) -> int:
    """A random second: the same place of the trace under each load.

    Late enough for the site to have been watched before, and within three quarters of the trace, so
    that local jobs go on to come while the bag runs.
    """
    draw = np.random.default_rng([piece.settings.seed, piece.sample, zlib.crc32(piece.path.name.encode())])
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    earliest = min(first + WATCHED, last)
    return int(earliest + draw.random() * max(0, first + 0.75 * (last - first) - earliest))


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


def run_piece(piece: Piece) -> list[Outcome]:
    """Every bag by every strategy.

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
            result = _run(piece, cluster, seen, runtimes, strategy)
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


def _run(piece: Piece, cluster: Cluster, seen: Watched, runtimes: Array, strategy: Strategy) -> GridResult:
    settings = piece.settings
    if strategy == "static" or strategy == "adaptive":
        return run_grid_job(cluster, runtimes, settings.terms(cluster.processors, strategy))
    terms = msgspec.structs.replace(
        settings.terms(cluster.processors, "adaptive"),
        donation=settings.rules(strategy),
        allocation="mixed" if strategy == "mixed" else "transparent",
    )
    return run_grid_job(cluster, runtimes, terms, watched=seen.fork(cluster))


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
