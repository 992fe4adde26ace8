"""Places where requests can be made: a site, or each of its partitions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

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
    """The partition; empty: the site has only one."""
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


def places_of(site: SiteState, last: Sequence[Place] = ()) -> list[Place]:
    """The places of a site in the order of the configuration, with the requests that its queue does not show
    yet.

    Args:
        last: those of another decision, of which the plans are kept while nothing changes.
    """
    queue = site.queue
    if queue is None:
        unknown = Availability(QueueState(now=site.now, processors=0))
        return [Place(site=site, free=unknown, rules=site.rules, allowed=0)]
    new = _unseen(site, queue)
    if last and last[0].site.queue == queue and _unseen(last[0].site, queue) == new:
        return [msgspec.structs.replace(each, site=site, allowed=_allowed(site, each.name)) for each in last]
    ours = {pilot.queued_as for pilot in site.requests}
    places = [
        Place(
            site=site,
            name=name,
            free=Availability(queue.in_partition(name), noted=ours),
            rules=site.rules.in_partition(name),
            allowed=_allowed(site, name),
        )
        for name in [name for name in site.rules.limits.partitions if name in queue.partitions] or [""]
    ]
    if len(places) == 1:
        return [_with(places[0], *(job for _, job in new))]
    for partition, job in new:
        for home in [place for place in places if place.name == partition]:
            places = [_with(place, job if place is home else _beside(home, place, job)) for place in places]
    return places


def home_of(pilot: PilotView, places: Sequence[Place]) -> Place:
    """The place of a pilot; the first one where its partition is shown no longer."""
    return next((place for place in places if place.name == pilot.partition), places[0])


def _allowed(site: SiteState, partition: str) -> int:
    there = sum(
        pilot.state.in_system for pilot in site.requests if not partition or pilot.partition == partition
    )
    return max(0, site.rules.in_partition(partition).limits.in_system - there)


def _unseen(site: SiteState, queue: QueueState) -> list[tuple[str, PendingJob]]:
    """The requests that were made since the queue was read, with their partitions; a plan of the scheduler
    has all that it got."""
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
    return [
        (pilot.partition, _as_pending(pilot, site.rules, queue.in_partition(pilot.partition)))
        for pilot in new
        if pilot.queued_as not in shown
    ]


def _as_pending(pilot: PilotView, rules: SiteRules, queue: QueueState) -> PendingJob:
    task = pilot.shape[0] if pilot.shape else None
    need = need_of(pilot.request, rules.in_partition(pilot.partition), queue, task)
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


def _with(place: Place, *jobs: PendingJob | None) -> Place:
    new = [job for job in jobs if job is not None]
    return msgspec.structs.replace(place, free=place.free.with_jobs(new)) if new else place


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
