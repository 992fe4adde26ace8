"""Places where requests can be made: each partition of a site, or the site as one. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import msgspec

from adaptor.crafting.availability import Availability, PlannedQueue
from adaptor.crafting.fits import RequestShape, chunk_of, for_work, need_of
from adaptor.crafting.nodes.schedule import parts_of
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState
from adaptor.model import CraftedRequest, PendingJob, PilotState, QueueState


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, with all requests that are made there so far."""

    site: SiteState
    """Its site: pilots, waits and limits that all places of the site share."""
    name: str = ""
    """The partition; empty: the site as one place."""
    free: Availability
    """Its queue with these requests, and what all of them leave free."""
    rules: SiteRules
    allowed: int
    """Requests that may still be made there."""
    closed: str = ""
    """Why no request is crafted here now; empty: one may be. It sees those of the other places anyway."""

    @property
    def queue(self) -> QueueState:
        return self.free.queue

    def rules_for(self, demand: Demand) -> SiteRules:
        """The rules with the demand's own bounds on p and tr here."""
        return for_work(bounded_rules(self.rules, demand, self.name), self.queue, demand)

    def shape(self, demand: Demand) -> RequestShape:
        """The shape of requests for such tasks here."""
        return RequestShape.for_demand(self.rules_for(demand), self.queue, demand)

    def shares_with(self, other: Place) -> bool:
        """Whether what runs here may take processors there."""
        if not self.queue.nodes or not other.queue.nodes:
            return True  # they are not known
        ours = {node.name for node in self.queue.nodes if node.ours}
        return any(node.name in ours for node in other.queue.nodes if node.ours)


class CraftingSituation(msgspec.Struct, frozen=True, kw_only=True):
    """All that a heuristic may look at (De Rose §4.3)."""

    free: Availability
    """The queue, and what its jobs leave free."""
    shape: RequestShape
    """The shape of requests for the tasks, by the rules of the place and the estimated runtime (§4.3.1)."""
    allowed_requests: int
    """The paper's maxPendingRequests less its actualPendingRequests."""
    remaining_tasks: int
    """Waiting tasks that no request in the system covers."""

    @property
    def queue(self) -> QueueState:
        return self.free.queue


Heuristic = Callable[[CraftingSituation], list[CraftedRequest]]


def bounded_rules(rules: SiteRules, demand: Demand, partition: str) -> SiteRules:
    """The rules with the demand's own bounds on p and tr in a partition; empty: the site has only one."""
    limits, largest = rules.limits, demand.largest_in(partition)
    if largest is not None:
        limits = msgspec.structs.replace(
            limits, max_proc=min(limits.max_proc, largest.p), max_tr=min(limits.max_tr, largest.tr)
        )
    if demand.most < limits.max_proc:
        limits = msgspec.structs.replace(limits, max_proc=int(demand.most))
    if demand.longest is not None:
        limits = msgspec.structs.replace(limits, max_tr=min(limits.max_tr, demand.longest))
    return msgspec.structs.replace(rules, limits=limits, least_tr=demand.least_tr)


def as_one(site: SiteState, last: Availability | None = None) -> Place:
    """A site as one place, with the requests that its queue does not show yet.

    Args:
        last: its queue as planned for another decision, which is kept while nothing changes.
    """
    queue = site.queue
    if queue is None:
        unknown = Availability(QueueState(now=site.now, processors=0))
        return Place(site=site, free=unknown, rules=site.rules, allowed=0)
    if new := tuple(_as_pending(pilot, site.rules, queue) for pilot in _unseen(site, queue)):
        queue = msgspec.structs.replace(queue, pending=queue.pending + new)
    free = last if last is not None and last.queue == queue else Availability(queue, noted=_ours(site))
    return Place(site=site, free=free, rules=site.rules, allowed=site.requests_left)


def places_of(site: SiteState, last: Availability | None = None) -> list[Place]:
    """Partitions in the order of the configuration, with the requests that the queue does not show yet; the
    site as one place where it has none. `last`: as for `as_one`."""
    queue, places = site.queue, list[Place]()
    names = [name for name in site.rules.limits.partitions if queue and name in queue.partitions]
    if queue is None or not names:
        return [as_one(site, last)]
    for name in names:
        rules, free = site.rules.in_partition(name), Availability(queue.partitions[name], noted=_ours(site))
        there = sum(pilot.state.in_system for pilot in site.requests if pilot.partition == name)
        allowed = max(0, rules.limits.in_system - there)
        places.append(Place(site=site, name=name, free=free, rules=rules, allowed=allowed))
    for pilot in _unseen(site, queue):
        home = next((place for place in places if place.name == pilot.partition), None)
        if home is not None:
            new = _as_pending(pilot, home.rules, home.queue)
            places = [_with(place, new if place is home else _beside(home, place, new)) for place in places]
    return places


def _ours(site: SiteState) -> set[str]:
    """Names of its requests in the queue."""
    return {pilot.queued_as for pilot in site.requests}


def _unseen(site: SiteState, queue: QueueState) -> list[PilotView]:
    """The requests that were made since the queue was read; a plan of the scheduler has all that it got."""
    since = math.inf if isinstance(queue, PlannedQueue) else queue.now
    new = [
        pilot
        for pilot in site.requests
        if pilot.state is PilotState.SUBMITTING or (pilot.submitted or 0.0) >= since
    ]
    if not new:
        return []
    queues = (queue, *queue.partitions.values())
    shown = {job.id for each in queues for jobs in (each.running, each.pending) for job in jobs}
    return [pilot for pilot in new if pilot.queued_as not in shown]


def _as_pending(pilot: PilotView, rules: SiteRules, queue: QueueState) -> PendingJob:
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
            f"request {len(home.queue.pending)} {home.name}",
            new.request.p,
            new.request.tr,
            new.predicted_start,
            need=need_of(new.request, home.rules, home.queue, demand.task),
            new=True,
        )
        made = msgspec.structs.replace(home, allowed=home.allowed - 1)
        if len(places) == 1:
            home = _with(made, pending)
            places = [home]
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
    return msgspec.structs.replace(place, free=place.free.with_job(job))


def _planned(home: Place, job: PendingJob, demand: Demand) -> tuple[float, PendingJob]:
    """The most likely start of a request, and the request with the nodes that it will get."""
    free = home.free
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
    if job is None or math.isinf(start):
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
