"""One submission time on one trace: each bag in each way, from the same state of the cluster."""

from __future__ import annotations

import msgspec

from adaptor_experiments.derose.sample import added_wait, cluster_at, load
from adaptor_experiments.peers.by_hand import ByHand
from adaptor_experiments.peers.design import WAYS, Ours, Piece
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.kernels import Array
from adaptor_simulation.what_if import LocalJobs


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
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
    """That were submitted."""
    local_wait: int
    """Seconds by which the local jobs waited longer in all (see `added_wait`)."""

    @property
    def added(self) -> float:
        """Seconds by which local jobs waited longer, for each processor-second of the tasks."""
        return self.local_wait / self.work


def run_piece(piece: Piece) -> list[Outcome]:
    """Raises TraceError: the trace cannot be read or leaves no job."""
    workload, settings = piece.workload, piece.settings
    jobs = load(piece.path, workload.processors)
    base = cluster_at(workload, jobs, piece.scheduler, settings.seed, piece.sample)
    local, outcomes = LocalJobs(base), list[Outcome]()
    for bag in settings.bags:
        runtimes = bag.runtimes(settings.seed, piece.sample)
        for way in settings.ways:
            cluster = base.fork()
            found = _run(way, cluster, runtimes, settings.max_tr)
            end = base.now + found.turnaround if found else 0
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
                    local_wait=added_wait(local, cluster, end) if found else 0,
                )
            )
    return outcomes


def _run(name: str, cluster: Cluster, runtimes: Array, max_tr: int) -> ByHand | None:
    """None: this way cannot run the bag."""
    way = WAYS[name]
    if not isinstance(way, Ours):
        return way.run(cluster, runtimes, max_tr)
    result = run_grid_job(cluster, runtimes, way.terms(cluster.processors, max_tr))
    return ByHand(turnaround=result.turnaround, jobs=len(result.requests), held=result.held)
