"""What a simulated cluster of nodes shows of its queue, in the words of a real scheduler."""

from __future__ import annotations

import msgspec

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Part
from adaptor.simulation.kernels import RUN_JOB, W_JOB, W_LIMIT, W_NEED, W_START
from adaptor.simulation.nodes.cluster import NodeCluster
from adaptor.simulation.nodes.kernels import RUN_PLACE, W_PLACE


def node_queue(cluster: NodeCluster) -> QueueState:
    """The jobs of everyone with the nodes that they hold or will hold, own ones included.

    Identifiers are the simulation's numbers as text. Conservative backfilling plans the start and the nodes
    of each waiting job, EASY those of the first alone. An end is the one by the time limit.
    """
    running = []
    for job, place in cluster.running_rows()[:, [RUN_JOB, RUN_PLACE]].tolist():
        start, limit, need = cluster.started_job(job)
        running.append(RunningJob(str(job), need, float(start + limit), cluster.parts(job, place)))
    return QueueState(
        now=float(cluster.now),
        processors=cluster.processors,
        running=tuple(running),
        pending=_pending(cluster),
        nodes=cluster.machine.nodes,
    )


def processor_queue(cluster: NodeCluster) -> QueueState:
    """The same queue as a scheduler shows it that does not say where jobs run: processors alone count."""
    queue = node_queue(cluster)
    return msgspec.structs.replace(
        queue,
        nodes=(),
        running=tuple(msgspec.structs.replace(job, parts=()) for job in queue.running),
        pending=tuple(msgspec.structs.replace(job, parts=(), need=None) for job in queue.pending),
    )


def _pending(cluster: NodeCluster) -> tuple[PendingJob, ...]:
    planned = _planned(cluster)
    pending = []
    for job, processors, limit in cluster.waiting_rows()[:, [W_JOB, W_NEED, W_LIMIT]].tolist():
        start, parts = planned.get(job, (None, ()))
        pending.append(
            PendingJob(str(job), processors, float(limit), start, parts=parts, need=cluster.need(job))
        )
    return tuple(pending)


def _planned(cluster: NodeCluster) -> dict[int, tuple[float, tuple[Part, ...]]]:
    """By job the start and the nodes that the policy plans; those it does not plan are missing."""
    if cluster.policy == "easy":
        return cluster.planned_head()
    return {
        job: (float(start), cluster.parts(job, place))
        for job, start, place in cluster.waiting_rows()[:, [W_JOB, W_START, W_PLACE]].tolist()
    }
