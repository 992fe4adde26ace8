"""Choice of a request's partition at a site: the one where it runs most tasks for its time. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from adaptor.crafting.fits import RequestShape
from adaptor.crafting.places import CraftingSituation, Heuristic, Place, with_crafted
from adaptor.crafting.reasons import none_left, nothing_possible
from adaptor.crafting.situation import (
    Demand,
    Elsewhere,
    PilotView,
    Reshape,
    Withdraw,
)
from adaptor.model import CraftedRequest
from adaptor.units import format_duration

ALIKE = 1 + 1e-9  # throughputs that differ by less than this factor differ by rounding errors


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks for which requests are crafted, with their limits."""

    demand: Demand
    remaining: int
    """Tasks that no request covers."""
    allowed: int
    """The most requests to craft."""
    pilots: tuple[PilotView, ...] = ()
    """Pilots in the system that serve the demand."""
    replans: bool = True
    """Whether to plan for all waiting tasks besides `elsewhere`; else those that remain are this site's part,
    as they were divided by cost or time."""
    elsewhere: Elsewhere = {}
    """Work of other sites for the same tasks."""


class Made(msgspec.Struct, frozen=True):
    """Requests that were crafted."""

    crafted: list[CraftedRequest]
    places: list[Place]
    """The places, with these requests in their queues."""
    reason: str = ""
    """Reason why no request was crafted."""
    withdrawn: Sequence[Withdraw] = ()
    """Pilots that are withdrawn in order to make better requests."""
    reshaped: Sequence[Reshape] = ()
    """Queued requests that are changed in their place."""


class Offer(msgspec.Struct, frozen=True):
    """A request that a partition offers."""

    place: Place
    start: float
    """Predicted, for heuristics that do not look at the queue too; `math.inf`: never."""
    throughput: float
    """Tasks per second of turn-around time, the wait included."""

    def words(self, now: float) -> str:
        """`short (12 tasks an hour, from now)`."""
        if math.isinf(self.start):
            return f"{self.place.name} (never)"
        begin = f"in {format_duration(self.start - now)}" if self.start > now else "from now"
        return f"{self.place.name} ({self.throughput * 3600:.3g} tasks an hour, {begin})"


Plan = Callable[[list[Place], Wanted], Made]  # a heuristic's plan for a demand, in the places of a site


def by_free_slots(heuristic: Heuristic, among: Callable[[list[Place], Wanted], Made]) -> Plan:
    """The plan of a heuristic that crafts requests for the tasks which no pilot covers.

    Args:
        heuristic: for a site without partitions, or with one.
        among: for a site with several.
    """

    def plan(places: list[Place], wanted: Wanted) -> Made:
        limits = places[0].site.rules.limits
        if len(limits.partitions) <= 1:
            (place,) = places
            situation = situation_in(place, wanted)
            found = [msgspec.structs.replace(each, partition=place.name) for each in heuristic(situation)]
            crafted = within(found, wanted.demand)
            reason = "" if crafted else nothing_possible(situation)
            return Made(crafted, with_crafted(places, place, crafted, wanted.demand), reason)
        if wanted.allowed <= 0:
            return Made([], places, none_left(limits, wanted.remaining))
        seen = opened(places, wanted.demand)
        made = among(seen, wanted)
        return made if made.crafted else Made([], made.places, why_none(seen, wanted))

    return plan


def opened(places: Sequence[Place], demand: Demand) -> list[Place]:
    """The places, closed where no request for these tasks may be made now.

    A partition whose requests are too short for the tasks gets none while another one allows longer ones.
    """
    failed = [place.site.avoided.get((demand.shape, place.name), "") for place in places]
    able = (place for place, why in zip(places, failed, strict=True) if not why)
    longest = max((place.rules_for(demand).limits.max_tr for place in able), default=0)
    return [
        msgspec.structs.replace(place, closed=why or _why_too_short(place, demand, longest))
        for place, why in zip(places, failed, strict=True)
    ]


def _why_too_short(place: Place, demand: Demand, longest: int) -> str:
    """Why its longest request holds no task; empty: it does, or none of the `longest` of all places does."""
    rules = place.rules_for(demand)
    need = demand.runtime + rules.pad
    if rules.limits.max_tr >= min(need, longest):
        return ""
    lasts, largest = format_duration(rules.limits.max_tr), demand.largest_in(place.name)
    why = f"a task may need {format_duration(need)}, and a request lasts {lasts} at most"
    return why if largest is None else f"{why}: {largest.why}"


def why_closed(places: Sequence[Place]) -> dict[str, str]:
    """Why some partitions of a site get no request now, by name."""
    queue = places[0].site.queue
    shut = queue.closed if queue is not None and len(places) > 1 else {}
    return {**shut, **{place.name: place.closed for place in places if place.closed}}


def why_none(places: Sequence[Place], wanted: Wanted) -> str:
    """Why none of the places gets a request."""
    reasons = why_closed(places)
    for place in places:
        limits, used_up = place.rules.limits, place.allowed <= 0 and len(places) > 1
        limit = f"its {limits.in_system_key} is {limits.in_system} and used up"
        nothing = limit if used_up else nothing_possible(situation_in(place, wanted))
        reasons.setdefault(place.name, nothing)
    return by_partition(reasons)


def by_partition(reasons: Mapping[str, str]) -> str:
    """Reasons by the name of a partition in one sentence; the only one needs no name."""
    if len(reasons) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"{name}: {why}" for name, why in reasons.items())


def one_by_one(heuristic: Heuristic, places: list[Place], wanted: Wanted) -> Made:
    """Craft requests one by one, for heuristics that look at no other request, the static one among them.

    Each partition proposes the requests that it would get alone. The request with the most throughput is
    made; of equal ones the one that starts first, then that of the partition listed first. Then the
    partitions propose again, with it in place.
    """
    crafted: list[CraftedRequest] = []
    while len(crafted) < wanted.allowed and wanted.remaining > 0:
        rest = msgspec.structs.replace(wanted, allowed=wanted.allowed - len(crafted))
        proposals = [_proposal(heuristic, place, rest) for place in places]
        found = [proposal for proposal in proposals if proposal is not None]
        if not found:
            break
        offers = [offer for offer, _ in found]
        best = best_of(offers)
        request = placed(next(crafted for offer, crafted in found if offer is best), best, offers)
        if not within([*crafted, request], wanted.demand)[len(crafted) :]:
            break
        crafted.append(request)
        places = with_crafted(places, best.place, [request], wanted.demand)
        wanted = msgspec.structs.replace(wanted, remaining=wanted.remaining - request.tasks)
    return Made(within(crafted, wanted.demand), places)


def best_of(offers: Iterable[Offer]) -> Offer:
    """The offer with the most throughput; of equal ones the one that starts first, then the first."""
    best, *others = offers
    for other in others:
        more = other.throughput > best.throughput * ALIKE
        if more or (other.throughput * ALIKE >= best.throughput and other.start < best.start):
            best = other
    return best


def placed(crafted: CraftedRequest, best: Offer, offers: Iterable[Offer]) -> CraftedRequest:
    """The request with its partition, and in its reason what the others offered."""
    now = best.place.queue.now
    others = [offer.words(now) for offer in offers if offer.place.name != best.place.name]
    reason = f"{crafted.reason}; in {best.words(now)}"
    if others:
        reason += f", rather than {' or '.join(others)}"
    return msgspec.structs.replace(crafted, reason=reason, partition=best.place.name)


def open_situation(place: Place, wanted: Wanted) -> CraftingSituation | None:
    """The situation for a heuristic in a partition; None: no request may be made there."""
    return None if place.closed or place.allowed <= 0 else situation_in(place, wanted)


def _proposal(heuristic: Heuristic, place: Place, wanted: Wanted) -> tuple[Offer, CraftedRequest] | None:
    """The first request that the heuristic crafts in a partition; None: none."""
    situation = open_situation(place, wanted)
    if situation is None or not (found := heuristic(situation)):
        return None
    shape = situation.shape
    start = found[0].predicted_start
    if start is None:
        free = situation.free.profile(shape.chunk)
        start = free.earliest_start(found[0].request.p, found[0].request.tr)
    return Offer(place, start, throughput(found[0], shape, start, place.queue.now)), found[0]


def throughput(crafted: CraftedRequest, shape: RequestShape, start: float, now: float) -> float:
    """Tasks per second from now until a request has run those that it is crafted for; 0 if it never starts.

    What counts is the time that the tasks take: the static heuristic asks for the longest time allowed.
    """
    rounds = math.ceil(crafted.tasks / max(1, shape.slots(crafted.request.p)))
    busy = min(crafted.request.tr, shape.rules.pad + rounds * shape.runtime)
    return crafted.tasks / (start + busy - now)


def within(crafted: list[CraftedRequest], demand: Demand) -> list[CraftedRequest]:
    """The first requests whose sum of processors is within `demand.most`."""
    if math.isinf(demand.most):
        return crafted
    kept: list[CraftedRequest] = []
    left = demand.most
    for new in crafted:
        left -= new.request.p
        if left < 0:
            break
        kept.append(msgspec.structs.replace(new, reason=f"{new.reason}; {demand.why_most}"))
    return kept


def situation_in(place: Place, wanted: Wanted) -> CraftingSituation:
    """The situation for a heuristic in a place."""
    return CraftingSituation(
        free=place.free,
        shape=place.shape(wanted.demand),
        allowed_requests=max(0, min(wanted.allowed, place.allowed)),
        remaining_tasks=wanted.remaining,
    )
