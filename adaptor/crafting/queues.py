"""Places of a site's requests: its one queue, or each of its partitions. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import chunk_of, need_of
from adaptor.crafting.nodes.schedule import parts_of
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState
from adaptor.model import CraftedRequest, PendingJob, PilotState, QueueState


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, with all requests that are made so far."""

    name: str
    """The partition; empty: the site has only one."""
    queue: QueueState
    rules: SiteRules
    allowed: int
    """Requests that may still be made there."""
    free: Availability | None = None
    """Availability next to all these jobs, which saves planning the queue again for each request; None: the
    site has only one place."""
    usable: bool = True
    """False: it gets none of the requests that are crafted now, and still sees those of the others."""

    def shares_with(self, other: Place) -> bool:
        """Whether what runs here may take processors there."""
        if not self.queue.nodes or not other.queue.nodes:
            return True  # they are not known
        ours = {node.name for node in self.queue.nodes if node.ours}
        return any(node.name in ours for node in other.queue.nodes if node.ours)


def rules_in(rules: SiteRules, partition: str) -> SiteRules:
    """The rules for requests in a partition; those of the site where it has only one."""
    limits = rules.limits.partitions.get(partition)
    return rules if limits is None else msgspec.structs.replace(rules, limits=limits)


def queue_in(queue: QueueState, partition: str) -> QueueState:
    """The queue as requests in a partition meet it; that of the site where it has only one."""
    return queue.partitions.get(partition, queue)


def places_of(view: SiteState, queue: QueueState) -> list[Place]:
    """Places in the order of the configuration, with the requests that the scheduler may not show yet.

    If the scheduler shows one already, it counts twice: planning may then miss a free slot, but never
    requests the same slot twice.
    """
    places: list[Place] = []
    for name in [name for name in view.rules.limits.partitions if name in queue.partitions] or [""]:
        rules = rules_in(view.rules, name)
        there = sum(pilot.state.in_system for pilot in view.requests if not name or pilot.partition == name)
        allowed = max(0, rules.limits.in_system - there)
        places.append(Place(name=name, queue=queue_in(queue, name), rules=rules, allowed=allowed))
    for pilot in view.requests:
        home = next((place for place in places if place.name == pilot.partition), None)
        if pilot.state is PilotState.SUBMITTING and home is not None:
            new = as_pending(pilot, home.rules, home.queue)
            places = [_with(place, new if place is home else _beside(home, place, new)) for place in places]
    if len(places) == 1 and len(view.rules.limits.partitions) < 2:
        return places
    ours = {pilot.queued_as for pilot in view.requests}
    return [msgspec.structs.replace(place, free=Availability(place.queue, noted=ours)) for place in places]


def as_pending(pilot: PilotView, rules: SiteRules, queue: QueueState) -> PendingJob:
    """A request that the scheduler may not show yet."""
    task = pilot.shape[0] if pilot.shape else None
    need = need_of(pilot.request, rules, queue, task)
    return PendingJob(pilot.queued_as, pilot.request.p, pilot.request.tr, need=need, new=True)


def with_crafted(
    places: list[Place], home: Place, crafted: Iterable[CraftedRequest], demand: Demand
) -> list[Place]:
    """The places after these requests are made in one of them: they take the nodes that others share too."""
    for new in crafted:
        pending = PendingJob(
            f"request {len(home.queue.pending)}",
            new.request.p,
            new.request.tr,
            new.predicted_start,
            need=need_of(new.request, home.rules, home.queue, demand.task),
            new=True,
        )
        made = _with(msgspec.structs.replace(home, allowed=home.allowed - 1), pending)
        if home.free is None:  # it is the only place
            places, home = [made], made
            continue
        start, known = _planned(home, pending, demand)
        places = [
            _holding(made if place is home else place, _beside(home, place, known), start) for place in places
        ]
        home = next(place for place in places if place.name == home.name)
    return places


def _with(place: Place, job: PendingJob | None) -> Place:
    if job is None:
        return place
    queue = msgspec.structs.replace(place.queue, pending=(*place.queue.pending, job))
    return msgspec.structs.replace(place, queue=queue)


def _planned(home: Place, job: PendingJob, demand: Demand) -> tuple[float, PendingJob]:
    """The most likely start of a request, and the request with the nodes that it will get."""
    free = home.free
    assert free is not None
    unit = chunk_of(home.rules, home.queue, demand.task) if home.queue.nodes else None
    start = job.planned_start
    if start is None:
        start = free.profile(unit).earliest_start(job.processors, job.tr)
    if free.nodes is None or unit is None or job.need is None or math.isinf(start):
        return start, job
    parts = parts_of(free.nodes, unit, job.need.chunks, start, start + job.tr)
    return start, msgspec.structs.replace(job, parts=parts)


def _holding(place: Place, job: PendingJob | None, start: float) -> Place:
    """The place with a request that takes something of it; None, or one that never starts: nothing."""
    if job is None or place.free is None or math.isinf(start):
        return place
    known = msgspec.structs.replace(job, planned_start=start)
    return msgspec.structs.replace(place, free=place.free.beside(known, start))


def _beside(home: Place, other: Place, job: PendingJob) -> PendingJob | None:
    """The part of a request of one place that it takes of another (or of its own); None: nothing.

    Where no nodes are known, the places are taken to share all of their processors.
    """
    if not home.queue.nodes or not other.queue.nodes:
        return msgspec.structs.replace(job, processors=min(job.processors, other.queue.processors))
    there = {node.name for node in other.queue.nodes}
    if job.parts:
        parts = tuple(part for part in job.parts if part.node in there)
        processors = sum(part.processors for part in parts)
        return msgspec.structs.replace(job, parts=parts, processors=processors) if parts else None
    shared = frozenset(node.name for node in home.queue.nodes if node.ours and node.name in there)
    if not shared:
        return None
    need = job.need and msgspec.structs.replace(job.need, nodes=shared)
    return msgspec.structs.replace(job, processors=min(job.processors, other.queue.processors), need=need)
