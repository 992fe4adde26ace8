"""The cluster of a replay as the planner sees it, and requests as its scheduler takes them."""

from __future__ import annotations

import msgspec

from adaptor.crafting.fits import need_of, unit_of, why_no_node_holds
from adaptor.crafting.situation import SiteRules
from adaptor.model import QueueState, Request
from adaptor.resources import Need, TaskSize
from adaptor.simulation.cluster import Cluster
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.grid_job import GridTerms
from adaptor.simulation.queue_view import planned_queue, queue_state


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
