"""What a simulated cluster shows of its queue, in the words of a real scheduler."""

from __future__ import annotations

from adaptor.crafting.availability import PlannedQueue
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.simulation import kernels as k
from adaptor.simulation.cluster import Simulation


def queue_state(cluster: Simulation) -> QueueState:
    """The jobs of everyone, own ones included, as `squeue` would show them at the end of this second.

    Identifiers are the simulation's numbers as text. Conservative backfilling plans the start of each
    waiting job, EASY that of the first alone. An end is the one by the time limit.
    """
    running = []
    for job in cluster.running_rows()[:, k.RUN_JOB].tolist():
        start, limit, need = cluster.started_job(job)
        running.append(RunningJob(str(job), need, float(start + limit)))
    return QueueState(
        now=float(cluster.now),
        processors=cluster.processors,
        running=tuple(running),
        pending=_pending(cluster),
    )


def planned_queue(cluster: Simulation) -> PlannedQueue:
    """The same in short, for the planner: what is free beside all that is planned (see `queue_state`).

    Under EASY only what runs is planned; the planner plans the jobs that wait.
    """
    times, free = cluster.profile()
    return PlannedQueue(
        now=float(cluster.now),
        processors=cluster.processors,
        plan=tuple(zip(times.tolist(), free.tolist(), strict=True)),
        pending=_pending(cluster) if cluster.policy == "easy" else (),
    )


def _pending(cluster: Simulation) -> tuple[PendingJob, ...]:
    planned = planned_starts(cluster)
    return tuple(
        PendingJob(str(job), need, float(limit), planned.get(job))
        for job, need, limit in cluster.waiting_rows()[:, [k.W_JOB, k.W_NEED, k.W_LIMIT]].tolist()
    )


def planned_starts(cluster: Simulation) -> dict[int, float]:
    """The starts that the policy plans, by job; those it does not plan are missing."""
    rows = cluster.waiting_rows()
    if not len(rows):
        return {}
    if cluster.policy == "easy":
        times, free = cluster.profile()
        # The shadow time: with running jobs alone, what is free only grows.
        shadow = times[(free >= rows[0, k.W_NEED]).argmax()]
        return {int(rows[0, k.W_JOB]): float(shadow)}
    return dict(zip(rows[:, k.W_JOB].tolist(), rows[:, k.W_START].astype(float).tolist(), strict=True))
