"""One submission time on one trace: each bag in each way, from the same state of the cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor_experiments.derose.design import Workload
from adaptor_experiments.derose.sample import cluster_at, followed, load
from adaptor_experiments.peers.by_hand import ByHand, Site
from adaptor_experiments.peers.design import WAYS, Ours, Piece
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import Array
from adaptor_simulation.slowdown import UNHARMED, Slowdowns
from adaptor_simulation.what_if import LocalJobs


class Outcome(Slowdowns, frozen=True, kw_only=True):
    """One bag in one way: a line of the results. Times in seconds, held and work in processor-seconds."""

    trace: str
    scheduler: str
    sample: int
    tasks: int
    mean: int
    shape: str
    way: str
    submitted: int
    turnaround: int
    """-1: this way cannot run the bag."""
    work: int
    held: int
    jobs: int
    """Number of submitted jobs."""
    local_wait: int
    """Seconds by which the local jobs waited longer in all, until three days after the bag's end."""

    @property
    def added(self) -> float:
        """Seconds by which local jobs waited longer, for each processor-second of the tasks."""
        return self.local_wait / self.work


def run_piece(piece: Piece) -> list[Outcome]:
    """Raises TraceError: the trace cannot be read or leaves no job."""
    workload, settings = piece.workload, piece.settings
    base = cluster_at(
        *on_nodes(workload, piece.path, settings.node),
        piece.scheduler,
        settings.seed,
        piece.sample,
        settings.queue,
    )
    local, outcomes = LocalJobs(base), list[Outcome]()
    for bag in settings.bags:
        runtimes = bag.runtimes(settings.seed, piece.sample)
        for way in settings.ways:
            cluster = base.fork()
            found = _run(way, cluster, runtimes, settings.site)
            jobs = followed(local, cluster, base.now + found.turnaround) if found else None
            outcomes.append(
                Outcome(
                    trace=workload.key,
                    scheduler=piece.scheduler,
                    sample=piece.sample,
                    **msgspec.structs.asdict(bag),
                    way=way,
                    submitted=base.now,
                    turnaround=found.turnaround if found else -1,
                    work=int(runtimes.sum()),
                    held=found.held if found else 0,
                    jobs=found.jobs if found else 0,
                    local_wait=jobs.added_wait if jobs else 0,
                    **msgspec.structs.asdict(jobs.slowdowns if jobs else UNHARMED),
                )
            )
    return outcomes


def on_nodes(workload: Workload, trace: Path, node: int) -> tuple[Workload, Jobs]:
    """The machine and its jobs, which all have whole nodes."""
    whole = msgspec.structs.replace(workload, processors=workload.processors // node * node)
    return whole, load(trace, whole.processors).on_whole_nodes(node)


def _run(name: str, cluster: Cluster, runtimes: Array, site: Site) -> ByHand | None:
    """Figures of one run; None: this way cannot run the bag."""
    way = WAYS[name]
    if not isinstance(way, Ours):
        return way.run(cluster, runtimes, site)
    result = run_grid_job(cluster, runtimes, way.terms(cluster.processors, site))
    return ByHand(turnaround=result.turnaround, jobs=len(result.requests), held=result.held)
