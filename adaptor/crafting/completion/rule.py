"""The completion heuristic: what is there and the best beside it, or instead of one of its requests. Pure."""

from __future__ import annotations

import math

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.choosing import Made, Wanted, by_free_slots, by_partition, opened, why_closed, why_none
from adaptor.crafting.completion.search import Choice, Search, steps_for
from adaptor.crafting.places import Place, with_crafted
from adaptor.crafting.reasons import (
    asked,
    better_without,
    end_about,
    none_left,
    nothing_better,
    nothing_left,
    planned,
    too_short,
)
from adaptor.crafting.situation import PilotView, Withdraw
from adaptor.crafting.spreading import spread
from adaptor.model import CraftedRequest, PilotState
from adaptor.units import counted

WORTH_WITHDRAWING = steps_for(0.9)
"""A queued request is withdrawn for a completion that is sooner by this factor."""
SLOW = 0.3  # with later requests at this speed the completion must be sooner too
GROWN = 4  # tasks of a bag for each slot of the only request, from which on another one is looked for
WEIGHED = 8  # the most queued requests that are compared: the newest
_SETTLED = 300.0  # seconds after which a request may make room, where requests last as long as usual
_LEAST_SETTLED = 30.0  # Slurm's default bf_interval: before that a request may have no planned start

_SHARED = by_free_slots(adaptive, spread)


def by_completion(places: list[Place], wanted: Wanted) -> Made:
    """The requests that complete the tasks of a demand first, or what is withdrawn for them.

    Where the tasks were divided among several sites by cost or time, `adaptive` makes the requests for the
    part of this one: that division counts on requests as long as the estimated runtime says.
    """
    site, demand = places[0].site, wanted.demand
    if not wanted.replans:
        return _SHARED(places, wanted)
    if demand.most == 0:
        return Made([], places, demand.why_most)
    seen = opened(places, demand)
    if all(place.closed for place in seen):
        return Made([], places, by_partition(why_closed(seen)))
    search = Search(seen, wanted)
    if not any(shape.widest for place, shape in zip(seen, search.shapes, strict=True) if not place.closed):
        return Made([], places, why_none(seen, wanted))
    shortest = min(demand.shortest, search.rules.limits.max_tr)
    useless = [pilot for pilot in search.in_state(PilotState.QUEUED) if pilot.request.tr < shortest]
    if useless:
        return Made([], places, "", [Withdraw(pilot.id, too_short(pilot, [demand])) for pilot in useless])
    kept = search.best()
    if site.rules.may_withdraw and not demand.hosts_counted and (better := _better(kept, search)):
        return Made([], places, "", [better])
    crafted = _crafted(search, kept)[: wanted.allowed]
    for request in crafted:
        home = next(place for place in places if place.name == request.partition)
        places = with_crafted(places, home, [request], demand)
    tasks = search.tasks + demand.coming
    limit, ends = nothing_left(site, wanted.remaining), kept.set.ends if kept.set.members else ()
    # Where a limit leaves no request, it is the reason: the tasks could run.
    nothing = nothing_better(tasks, ends, _end(search, kept)) if ends or not limit else ""
    if not wanted.allowed and site.requests_left:  # other demands of this step got them
        nothing = none_left(site.rules.limits, tasks)
    closed = (f"{name}: {why}" for name, why in why_closed(seen).items())
    return Made(crafted, places, "; ".join(filter(None, (limit, nothing, *closed))))


def _better(kept: Choice, search: Search) -> Withdraw | None:
    """The request without which the bag is done much sooner; None: none.

    Of several queued ones the largest keeps its place: long waits end far sooner than planned. While no
    runtime is known, smaller ones make room before others as large, which must be worth twice as much.
    """
    if not kept.set.members:
        return None
    queued = search.in_state(PilotState.QUEUED)
    room = WORTH_WITHDRAWING
    if queued and not search.one_at_a_time:
        largest = max(queued, key=lambda pilot: (pilot.request.area, -pilot.id))
        queued.remove(largest)
        if len(search.believed) > 1:
            smaller = [pilot for pilot in queued if pilot.request.area < largest.request.area]
            queued, room = (smaller, room) if smaller else (queued, 2 * room)
    best, least = kept, room
    for pilot in [each for each in queued if _settled(each, search) or _outgrown(each, search)][-WEIGHED:]:
        found = search.best(pilot, (least, best.set.steps))
        sooner = found.set.worth < best.set.worth - least
        if sooner and found.set.at_pace(SLOW) <= kept.set.at_pace(SLOW):
            best, least = found, 0.0
    if best.withdrawn is None:
        return None
    why = better_without(best.withdrawn, _planned(search, best), _end(search, kept))
    return Withdraw(best.withdrawn.id, why, recraft=True)


def _settled(pilot: PilotView, search: Search) -> bool:
    """Whether a queued pilot may make room: local jobs have taken the place of what was queued just before.
    A request that should have started by now and is planned for later has
    lost its hole: the planned starts from which it was made were out of date."""
    if pilot.job is None:
        return False
    patience = max(_LEAST_SETTLED, _SETTLED * search.rules.usual_share)
    since, due = pilot.reshaped or pilot.submitted, pilot.predicted_start
    if due is not None and due <= search.now and search.wait(pilot) >= patience:
        return True
    return since is None or search.now - since >= patience


def _outgrown(pilot: PilotView, search: Search) -> bool:
    """Whether the only request that is allowed was made just before its bag grew: its place is young, and
    all tasks would run in it, one after another."""
    since = pilot.reshaped or pilot.submitted
    if not search.one_at_a_time or pilot.job is None or since is None or search.now - since > _LEAST_SETTLED:
        return False
    return GROWN * search.slots(pilot) <= search.tasks + search.demand.coming


def _crafted(search: Search, found: Choice) -> list[CraftedRequest]:
    """The requests of a choice that are to be made, in the order of their starts."""
    reason = _planned(search, found)
    if search.demand.coming:
        reason += f"; {counted(search.demand.coming, 'more task')} expected: the open bag is refilled"
    if search.demand.most < math.inf:
        reason += f"; {search.demand.why_most}"
    made = [(new, search.request(new, found.set.ends), search.places[new.where].name) for new in found.made]
    rounds = (search.shapes[new.where].rounds(request.tr) for new, request, _ in made)
    holds = [new.member.slots * max(1, count) for new, count in zip(found.made, rounds, strict=True)]
    share = min(1.0, search.demand.waiting / max(1, sum(holds)))
    return [
        CraftedRequest(request, search.now + new.member.start, max(1, int(share * most)), reason, name)
        for (new, request, name), most in zip(made, holds, strict=True)
    ]


def _planned(search: Search, found: Choice) -> str:
    several, words = len(search.places) > 1, list[str]()
    for new in found.made:
        where = search.places[new.where].name if several else ""
        words.append(asked(search.now, search.request(new, found.set.ends), new.member.start, where))
    return planned(words, _end(search, found))


def _end(search: Search, found: Choice) -> str:
    ends = zip(found.set.ends, (belief.weight for belief in search.believed), strict=True)
    return end_about(search.now, found.set.cost, ends) if search.demand.times.known else ""
