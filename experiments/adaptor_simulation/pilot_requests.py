"""View of a simulated cluster's queue, as of a real scheduler, and its answers to requests."""

from __future__ import annotations

import msgspec

from adaptor.crafting.availability import PlannedQueue
from adaptor.crafting.fits import need_of, unit_of, why_no_node_holds
from adaptor.crafting.situation import SiteRules
from adaptor.model import PendingJob, QueueState, Request, RunningJob
from adaptor.resources import Need, Part, TaskSize
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.kernels import JOB, LIMIT, NEED, NEVER, PLACE, START


def queue_state(cluster: Cluster, *, shown: bool | None = None) -> QueueState:
    """The jobs of all users, own ones included, as `squeue` would show them at the end of this second.

    Identifiers are the simulation's numbers as text. Conservative backfilling plans the start and the nodes
    of each waiting job that it looks at, EASY those of the first alone. An end is the one by the time limit.

    Args:
        shown: whether jobs are shown on their nodes; None: as the cluster does.
    """
    shown = cluster.machine.shown if shown is None else shown
    rows = cluster.running_rows()[:, [JOB, NEED, START, LIMIT, PLACE]].tolist()
    return QueueState(
        now=float(cluster.now),
        processors=cluster.processors,
        running=tuple(
            RunningJob(str(job), need, float(start + limit), cluster.parts(place) if shown else ())
            for job, need, start, limit, place in rows
        ),
        pending=_pending(cluster, shown=shown),
        nodes=cluster.machine.nodes if shown else (),
    )


def planned_queue(cluster: Cluster) -> PlannedQueue:
    """Processors alone, in short, for the planner: what is free next to all that is planned.

    The planner plans the jobs that wait and that the policy does not plan: under EASY all of them.
    """
    times, free = cluster.profile()
    easy = cluster.policy == "easy"
    pending = _pending(cluster, shown=False) if easy or cluster.rules.bounded else ()
    return PlannedQueue(
        now=float(cluster.now),
        processors=cluster.processors,
        plan=tuple(zip(times.tolist(), free.tolist(), strict=True)),
        pending=tuple(job for job in pending if easy or job.planned_start is None),
    )


def _pending(cluster: Cluster, *, shown: bool) -> tuple[PendingJob, ...]:
    """`shown`: with what the jobs ask of the nodes, and with those that are planned for them."""
    planned = _planned(cluster, shown=shown)
    pending = []
    for job, processors, limit, place in cluster.waiting_rows()[:, [JOB, NEED, LIMIT, PLACE]].tolist():
        start, parts = planned.get(job, (None, ()))
        need = cluster.need(place) if shown else None
        pending.append(
            PendingJob(str(job), processors, float(limit), start, parts=parts if shown else (), need=need)
        )
    return tuple(pending)


def _planned(cluster: Cluster, *, shown: bool) -> dict[int, tuple[float, tuple[Part, ...]]]:
    """By job the start and the nodes that the policy plans; those it does not plan are missing."""
    if cluster.policy == "easy":
        return cluster.planned_head()
    return {
        job: (float(start), cluster.parts(place) if shown else ())
        for job, start, place in cluster.waiting_rows()[:, [JOB, START, PLACE]].tolist()
        if start < NEVER
    }


def queue_for(cluster: Cluster, terms: GridTerms) -> QueueState:
    """The queue that the planner sees; in short where it counts processors and plans from new jobs on."""
    sees_nodes = terms.sees_nodes and cluster.machine.shown
    if sees_nodes or terms.traits.replans:
        return queue_state(cluster, shown=sees_nodes)
    return planned_queue(cluster)


def submit(
    cluster: Cluster, rules: SiteRules, task: TaskSize, request: Request, nodes: frozenset[str] | None = None
) -> int:
    """The number of the job. On nodes it asks for chunks, whatever the planner sees of them.

    Args:
        nodes: those of its partition; None: all.

    Raises:
        ReplayError: the nodes could never hold it; a planner that counts processors may craft such a request.
    """
    try:
        need = _need(cluster, rules, task, request, nodes)
        return cluster.submit(request.p, request.tr, need=need)
    except ValueError as error:
        raise ReplayError(f"a request could never start: {error}; lower --max-proc") from error


def reshape(
    cluster: Cluster,
    job: int,
    rules: SiteRules,
    task: TaskSize,
    request: Request,
    nodes: frozenset[str] | None = None,
) -> bool:
    """Let a job that waits ask for something else in its place, as `submit` would; whether it does.

    False: it has started, or the nodes could never hold that.
    """
    try:
        need = _need(cluster, rules, task, request, nodes)
        cluster.reshape(job, request.p, request.tr, need)
    except ValueError:
        return False
    return True


def _need(
    cluster: Cluster, rules: SiteRules, task: TaskSize, request: Request, nodes: frozenset[str] | None
) -> Need | None:
    """The chunks of a request; None: processors alone count. Raises ValueError: no node could hold one."""
    if not cluster.machine.shown:
        return None
    return need_of(request, rules, among(empty(cluster), nodes), task)


def among(queue: QueueState, nodes: frozenset[str] | None) -> QueueState:
    """The queue as a partition with these nodes sees it; None: it has all."""
    if nodes is None:
        return queue
    own = tuple(msgspec.structs.replace(node, ours=node.name in nodes) for node in queue.nodes)
    processors = sum(node.processors for node in own if node.ours and node.in_service)
    return msgspec.structs.replace(queue, nodes=own, processors=processors)


def slots_of(cluster: Cluster, terms: GridTerms, processors: int) -> int:
    """Tasks that run at the same time in a pilot with a number of processors."""
    return unit_of(terms.rules, empty(cluster), terms.task).slots(processors)


def check_place(cluster: Cluster, terms: GridTerms) -> None:
    """Refuse a bag whose tasks fit on no node.

    Raises:
        ReplayError: it is one.
    """
    reason = why_no_node_holds(empty(cluster), terms.task)
    if reason:
        raise ReplayError(f"the tasks run nowhere: {reason}")


def empty(cluster: Cluster) -> QueueState:
    """The nodes without their jobs."""
    nodes = cluster.machine.nodes if cluster.machine.shown else ()
    return QueueState(now=float(cluster.now), processors=cluster.processors, nodes=nodes)
