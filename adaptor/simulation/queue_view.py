"""What a simulated cluster shows of its queue, in the words of a real scheduler."""

from __future__ import annotations

from adaptor.crafting.availability import PlannedQueue
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Part
from adaptor.simulation.cluster import Cluster
from adaptor.simulation.kernels import RUN_JOB, RUN_PLACE, W_JOB, W_LIMIT, W_NEED, W_PLACE, W_START


def queue_state(cluster: Cluster, *, shown: bool | None = None) -> QueueState:
    """The jobs of all users, own ones included, as `squeue` would show them at the end of this second.

    Identifiers are the simulation's numbers as text. Conservative backfilling plans the start and the nodes
    of each waiting job, EASY those of the first alone. An end is the one by the time limit.

    Args:
        shown: whether jobs are shown on their nodes; None: as the cluster does.
    """
    shown = cluster.machine.shown if shown is None else shown
    running = []
    for job, place in cluster.running_rows()[:, [RUN_JOB, RUN_PLACE]].tolist():
        start, limit, need = cluster.started_job(job)
        parts = cluster.parts(job, place) if shown else ()
        running.append(RunningJob(str(job), need, float(start + limit), parts))
    return QueueState(
        now=float(cluster.now),
        processors=cluster.processors,
        running=tuple(running),
        pending=_pending(cluster, shown=shown),
        nodes=cluster.machine.nodes if shown else (),
    )


def planned_queue(cluster: Cluster) -> PlannedQueue:
    """Processors alone, in short, for the planner: what is free next to all that is planned.

    Under EASY only what runs is planned; the planner plans the jobs that wait.
    """
    times, free = cluster.profile()
    return PlannedQueue(
        now=float(cluster.now),
        processors=cluster.processors,
        plan=tuple(zip(times.tolist(), free.tolist(), strict=True)),
        pending=_pending(cluster, shown=False) if cluster.policy == "easy" else (),
    )


def _pending(cluster: Cluster, *, shown: bool) -> tuple[PendingJob, ...]:
    """`shown`: with what the jobs ask of the nodes, and with those that are planned for them."""
    planned = _planned(cluster, shown=shown)
    pending = []
    for job, processors, limit in cluster.waiting_rows()[:, [W_JOB, W_NEED, W_LIMIT]].tolist():
        start, parts = planned.get(job, (None, ()))
        need = cluster.need(job) if shown else None
        pending.append(
            PendingJob(str(job), processors, float(limit), start, parts=parts if shown else (), need=need)
        )
    return tuple(pending)


def _planned(cluster: Cluster, *, shown: bool) -> dict[int, tuple[float, tuple[Part, ...]]]:
    """By job the start and the nodes that the policy plans; those it does not plan are missing."""
    if cluster.policy == "easy":
        return cluster.planned_head()
    return {
        job: (float(start), cluster.parts(job, place) if shown else ())
        for job, start, place in cluster.waiting_rows()[:, [W_JOB, W_START, W_PLACE]].tolist()
    }
