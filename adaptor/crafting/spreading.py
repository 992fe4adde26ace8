"""The adaptive heuristic over several partitions: one set of requests that together run all tasks. Pure."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.adaptive import as_crafted, best_candidate, shares
from adaptor.crafting.candidates import Candidate, finish_of, optimize
from adaptor.crafting.choosing import (
    Made,
    Offer,
    Wanted,
    best_of,
    open_situation,
    placed,
    situation_in,
    within,
)
from adaptor.crafting.places import Place, with_crafted
from adaptor.model import CraftedRequest

_Chosen = tuple[Candidate, Offer, list[Offer]]
"""A request of the set, its offer, and what all partitions offered in its stead."""


def spread(places: list[Place], wanted: Wanted) -> Made:
    """Algorithm 2 of De Rose et al. 2008, §4.3.1, over the free slots of several partitions.

    The set of allowed requests is chosen one by one: from each partition comes the request with the best
    throughput for all remaining tasks, together with the requests already chosen in any partition, and the
    best of these is taken. No more are chosen once the next could finish no task before the others finish
    all. Then `optimize` cuts all of them together to what the tasks need. As in one queue, this is repeated
    while requests are allowed and tasks remain.
    """
    crafted: list[CraftedRequest] = []
    while len(crafted) < wanted.allowed and wanted.remaining > 0:
        rest = msgspec.structs.replace(wanted, allowed=wanted.allowed - len(crafted))
        some = _set_of(places, rest)
        kept = within([*crafted, *some], wanted.demand)[len(crafted) :]
        crafted += some[: len(kept)]
        for request in some[: len(kept)]:
            home = next(place for place in places if place.name == request.partition)
            places = with_crafted(places, home, [request], wanted.demand)
        wanted = msgspec.structs.replace(
            wanted, remaining=wanted.remaining - sum(request.tasks for request in some)
        )
        if len(kept) < len(some) or not some:
            break
    return Made(within(crafted, wanted.demand), places)


def _set_of(places: list[Place], wanted: Wanted) -> list[CraftedRequest]:
    """One set of at most `wanted.allowed` requests that fit together, in the order of their choice.

    Each fits together with those chosen before it: one made earlier would take the first nodes with room,
    which another partition may share.
    """
    chosen: list[_Chosen] = []
    beside = places
    while len(chosen) < wanted.allowed:
        found = _offers(beside, wanted)
        if not found or _too_late(found, chosen, wanted):
            break
        offers = [offer for offer, _ in found]
        best = best_of(offers)
        candidate = next(each for offer, each in found if offer is best)
        chosen.append((candidate, best, offers))
        request = as_crafted(candidate, candidate.tasks, situation_in(best.place, wanted))
        beside = with_crafted(beside, best.place, [request], wanted.demand)
    return _cut(chosen, wanted)


def _offers(places: list[Place], wanted: Wanted) -> list[tuple[Offer, Candidate]]:
    """The best request of each partition that has one."""
    situations = ((place, open_situation(place, wanted)) for place in places)
    best = ((place, best_candidate(situation)) for place, situation in situations if situation is not None)
    return [
        (Offer(place, each.slot.start, each.throughput), each) for place, each in best if each is not None
    ]


def _too_late(found: list[tuple[Offer, Candidate]], chosen: list[_Chosen], wanted: Wanted) -> bool:
    """Whether none of these requests can finish a task before the chosen ones finish all."""
    candidates = [candidate for candidate, *_ in chosen]
    if sum(candidate.tasks for candidate in candidates) < wanted.remaining:
        return False
    finish = finish_of(candidates, candidates[0].work)
    shortest = wanted.demand.runtime + candidates[0].work.shape.rules.pad
    return min((offer.start for offer, _ in found), default=math.inf) + shortest >= finish


def _cut(chosen: list[_Chosen], wanted: Wanted) -> list[CraftedRequest]:
    """The requests as they are made, cut to what the tasks need together."""
    if not chosen:
        return []
    cut = optimize([candidate for candidate, *_ in chosen], chosen[0][0].work)
    cut.sort(key=lambda candidate: (candidate.slot.start, -candidate.throughput))
    tasks = shares(cut, wanted.remaining)
    kept = {id(each.work): (each, share) for each, share in zip(cut, tasks, strict=True)}
    return [
        placed(as_crafted(*kept[id(was.work)], situation_in(offer.place, wanted)), offer, offers)
        for was, offer, offers in chosen
        if id(was.work) in kept
    ]
