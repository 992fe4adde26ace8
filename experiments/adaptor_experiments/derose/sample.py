"""One submission time on one trace, in one process: each kind of grid job, from one state of the cluster."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.crafting.heuristics import HEURISTICS, HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.snapshot import Snapshot
from adaptor.model import Limits
from adaptor_experiments.derose.design import Settings, Workload, submission, trace_files
from adaptor_simulation.cluster import Cluster, Policy, cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.queue_rules import BY_SUBMISSION, QueueRules
from adaptor_simulation.slowdown import Slowdowns
from adaptor_simulation.tasks.kernel_tasks import tasks_of
from adaptor_simulation.tasks.protocol import MakeTasks
from adaptor_simulation.traces.normalise import normalise
from adaptor_simulation.traces.swf_read import read_trace
from adaptor_simulation.what_if import FollowedJobs, LocalJobs
from adaptor_simulation.yardstick import Yardstick

AFTERWARDS = 3 * 86_400  # seconds after a bag's end for which the local jobs are followed


class Outcome(Slowdowns, frozen=True, kw_only=True):
    """One grid job: a line of the results. Times in seconds, held and work in processor-seconds."""

    trace: str
    sample: int
    tasks: int
    mean: int
    heterogeneity: int
    max_pending: int
    heuristic: str
    submitted: int
    turnaround: int
    bound: int
    """No turnaround can be less (see `Yardstick`)."""
    requests: int
    withdrawn: int
    """Requests that were taken back before they started."""
    reshaped: int
    """Changes of requests that waited."""
    held: int
    work: int
    local_wait: int
    """Seconds by which the local jobs waited longer in all (see `followed`)."""
    decisions: int
    """Number of times that the planner was asked."""
    planning: float
    """Seconds of processor time that it took for all of them."""


class TimedDecider:
    """Decides for a site, and takes the time."""

    def __init__(self) -> None:
        self.decisions = 0
        self.seconds = 0.0  # of processor time

    def __call__(self, snapshot: Snapshot) -> Decision:
        begin = time.process_time()
        decision = decide(snapshot)
        self.seconds += time.process_time() - begin
        self.decisions += 1
        return decision


@functools.lru_cache(maxsize=2)
def load(path: Path, processors: int) -> Jobs:
    """Raises TraceError: the trace cannot be read or leaves no job."""
    return normalise(read_trace(path), processors)[0]


def run_sample(
    workload: Workload, jobs: Jobs, settings: Settings, sample: int, make: MakeTasks = tasks_of
) -> list[Outcome]:
    """All grid jobs of one sample; the way to its instant is simulated once, and forked from.

    `make` says who runs the tasks (see `run_grid_job`).
    """
    base = cluster_at(workload, jobs, settings.scheduler, settings.seed, sample)
    at = base.now
    yardstick, local = Yardstick(base), LocalJobs(base)
    outcomes = []
    for kind in settings.job_types:
        runtimes = kind.runtimes(settings.seed, sample)
        for pending in settings.max_pending:
            bound = yardstick.bound(runtimes, pending * workload.processors)
            for heuristic in settings.heuristics:
                terms = terms_of(workload, settings, pending, heuristic)
                cluster = base.fork()
                decider = TimedDecider()
                result = run_grid_job(cluster, runtimes, terms, make, decider)
                here = followed(local, cluster, at + result.turnaround)
                outcomes.append(
                    Outcome(
                        trace=workload.key,
                        sample=sample,
                        **msgspec.structs.asdict(kind),
                        max_pending=pending,
                        heuristic=heuristic,
                        submitted=at,
                        turnaround=result.turnaround,
                        bound=bound,
                        requests=len(result.requests),
                        withdrawn=sum(each.started is None for each in result.requests),
                        reshaped=sum(each.reshaped for each in result.requests),
                        held=result.held,
                        work=result.work,
                        local_wait=here.added_wait,
                        **msgspec.structs.asdict(here.slowdowns),
                        decisions=decider.decisions,
                        planning=round(decider.seconds, 6),
                    )
                )
    return outcomes


def followed(local: LocalJobs, cluster: Cluster, end: int, afterwards: int = AFTERWARDS) -> FollowedJobs:
    """The local jobs that come until this number of seconds after a bag's end; the cluster's clock moves on.

    A job counts as far as it has waited by the end of the time for which they are followed, so that the sum
    is the same whether it has started by then or not.

    Args:
        end: of the bag's last task.
    """
    until = max(cluster.now, end + afterwards)
    return local.followed(cluster, until, came=until)


def cluster_at(
    workload: Workload,
    jobs: Jobs,
    scheduler: Policy,
    seed: int,
    sample: int,
    rules: QueueRules = BY_SUBMISSION,
) -> Cluster:
    """The cluster at the submission time of a sample."""
    base = cluster_of_processors(jobs, workload.processors, scheduler, rules)
    base.advance(submission(workload, int(jobs.submit[0]), int(jobs.submit[-1]), seed, sample))
    return base


def terms_of(workload: Workload, settings: Settings, pending: int, heuristic: HeuristicName) -> GridTerms:
    """The paper names no limit of the processors of one request: the machine is the limit."""
    limits = Limits(max_pending_requests=pending, max_proc=workload.processors, max_tr=settings.max_tr)
    return GridTerms(
        rules=SiteRules(limits=limits, may_reshape=True),
        heuristic=heuristic,
        workers=INSTANT_WORKERS,
        initial_tr=first_guess(settings, heuristic),
        growth_factor=settings.growth_factor,
        static_maximum=settings.static_maximum,
        poll_interval=int(settings.poll_interval),
    )


def first_guess(settings: Settings, heuristic: HeuristicName) -> float:
    """Seconds that a task is taken to run at first.

    That of the settings is the paper's; one that replans thinks of all doublings of a time of its own.
    """
    traits = HEURISTICS[heuristic]
    return traits.assumed_runtime if traits.replans else settings.initial_tr


class Piece(msgspec.Struct, frozen=True):
    """One sample of one trace."""

    workload: Workload
    path: Path
    settings: Settings
    sample: int

    @property
    def name(self) -> str:
        return f"{self.workload.in_files}-{self.sample:04}"


def pieces(workloads: Sequence[Workload], traces: Path, settings: Settings, samples: int) -> list[Piece]:
    """All samples, those of all traces in turn.

    Raises:
        ReplayError: a trace is not there.
    """
    paths = trace_files(workloads, traces)
    return [
        Piece(workload, path, settings, sample)
        for sample in range(samples)
        for workload, path in paths.items()
    ]


def run_piece(piece: Piece) -> list[Outcome]:
    """Raises TraceError: the trace is at fault."""
    return run_sample(piece.workload, jobs_of(piece), piece.settings, piece.sample)


def jobs_of(piece: Piece) -> Jobs:
    """The local jobs as they come. Raises TraceError: the trace is at fault."""
    return load(piece.path, piece.workload.processors).stretched(piece.settings.stretch)
