"""The completion heuristic: of several sets of requests, that which completes a bag first. Pure.

The sets are what is there with the best requests beside it, and the same without some of the requests.
"""

from __future__ import annotations

import math

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.choosing import (
    Made,
    Wanted,
    by_free_slots,
    by_partition,
    long_enough,
    shut_for,
    situation_in,
)
from adaptor.crafting.completion.beliefs import settled_after
from adaptor.crafting.completion.search import Choice, Search, places_for
from adaptor.crafting.completion.wording import compared, completion, nothing_better
from adaptor.crafting.queues import Place, with_crafted
from adaptor.crafting.refusal import (
    everything_covered,
    hour_used_up,
    limit_reached,
    nothing_possible,
    too_short,
)
from adaptor.crafting.situation import PilotView, PlanningView, Withdraw
from adaptor.crafting.spreading import spread
from adaptor.model import CraftedRequest, PilotState

WORTH_WITHDRAWING = places_for(0.9)
"""A queued request is withdrawn for a completion that is sooner by this factor."""
WORTH_ENDING = places_for(0.6)
"""A running pilot is ended, and its unfinished tasks begin anew, for a completion sooner by this factor."""
SLOW = 0.3
"""With later requests at this speed the completion must be sooner too."""
FORESEEN = 10.0
"""A bag that takes this many times the longest walltime withdraws nothing: it depends on unknown holes."""
WEIGHED = 8
"""The most queued requests, and running pilots, that are compared: the newest."""

_SHARED = by_free_slots(adaptive, spread)


def by_completion(view: PlanningView, places: list[Place], wanted: Wanted) -> Made:
    """The requests that complete the tasks of a demand first, or what is withdrawn for them.

    Where several sites share the tasks, `adaptive` makes the requests for the part of this one: the division
    among the sites counts on requests that are as long as the estimated runtime says.
    """
    if wanted.part:
        return _SHARED(view, places, wanted)
    demand, queue = wanted.demand, view.queue
    assert queue is not None
    if demand.most == 0:
        return Made([], places, demand.why_most)
    shut = shut_for(view, queue, demand) if len(places) > 1 else {}
    reasons = dict(shut)
    able = long_enough([place for place in places if place.name not in shut], demand, reasons)
    if not able:
        return Made([], places, by_partition(reasons))
    search = Search(view, places, wanted, able)
    if not search.possible:
        for place in places:
            reasons.setdefault(place.name, nothing_possible(situation_in(place, wanted)))
        return Made([], places, by_partition(reasons) if len(places) > 1 else reasons[places[0].name])
    useless = [pilot for pilot in wanted.pilots if _too_short(pilot, search)]
    if useless:
        return Made([], places, "", [Withdraw(pilot.id, too_short(pilot, [demand])) for pilot in useless])
    kept = search.kept()
    may_withdraw = view.rules.may_withdraw and demand.whole is None
    if may_withdraw and (better := _better(kept, search)):
        return Made([], places, "", better)
    crafted = _crafted(search, kept)
    for request in crafted[: wanted.allowed]:
        home = next(place for place in places if place.name == request.partition)
        places = with_crafted(places, home, [request], demand)
    told = (_why_none(view, wanted), nothing_better(search, kept), by_partition(shut))
    return Made(crafted[: wanted.allowed], places, "; ".join(filter(None, told)))


def _why_none(view: PlanningView, wanted: Wanted) -> str:
    """Which limit leaves no request, or that none is needed; empty: neither."""
    if view.submissions_left == 0:
        return hour_used_up(view, wanted.demand.waiting)
    if view.places_left:
        return ""
    return limit_reached(view, wanted.remaining) if wanted.remaining else everything_covered(view)


def _better(kept: Choice, search: Search) -> list[Withdraw]:
    """The request without which the bag is done much sooner, if any.

    Of several queued ones the largest keeps its place: long waits end far sooner than planned.
    """
    if not kept.set.members or min(kept.set.ends) > FORESEEN * search.max_tr:
        return []
    waiting, running = search.with_state(PilotState.QUEUED), search.with_state(PilotState.RUNNING)
    if not search.one_at_a_time and waiting:
        largest = max(waiting, key=lambda pilot: (pilot.request.area, -pilot.id))
        waiting = [pilot for pilot in waiting if pilot is not largest]
    best = _instead_of(kept, search, waiting, WORTH_WITHDRAWING) or _instead_of(
        kept, search, running, WORTH_ENDING
    )
    if best is None or best.withdrawn is None:
        return []
    ended = best.withdrawn.state is PilotState.RUNNING
    return [Withdraw(best.withdrawn.id, compared(search, best, kept), recraft=True, running=ended)]


def _instead_of(kept: Choice, search: Search, pilots: list[PilotView], worth: float) -> Choice | None:
    """The best choice without one of these pilots; None: none is sooner by `worth`."""
    best, mark, slow = None, kept.set, math.inf
    for pilot in [pilot for pilot in pilots if _settled(pilot, search)][-WEIGHED:]:
        found = search.without(pilot, mark, worth)
        if found is not None:
            slow = min(slow, kept.set.at_pace(SLOW))
            if found.set.at_pace(SLOW) <= slow:
                best, mark, worth = found, found.set, 0.0
    return best


def _settled(pilot: PilotView, search: Search) -> bool:
    """Whether a pilot may make room: what runs has shown what it brings, and local jobs have taken the place
    of what was queued just before. A request that should have started by now and is planned for later has
    lost its hole: the planned starts from which it was made were out of date."""
    patience = settled_after(search.max_tr)
    if pilot.job is None:
        return False
    if pilot.state is PilotState.RUNNING:
        since = pilot.started
    else:
        since = pilot.reshaped or pilot.submitted
        predicted = pilot.predicted_start
        if predicted is not None and predicted <= search.now and search.wait(pilot) >= patience:
            return True
    return since is None or search.now - since >= patience


def _too_short(pilot: PilotView, search: Search) -> bool:
    """Whether no waiting task can run in a queued pilot."""
    return pilot.state is PilotState.QUEUED and pilot.request.tr < min(search.demand.shortest, search.max_tr)


def _crafted(search: Search, found: Choice) -> list[CraftedRequest]:
    """The requests of a choice that are to be made, in the order of their starts."""
    ends, reason = found.set.ends, completion(search, found)
    if search.demand.most is not None:
        reason += f"; {search.demand.why_most}"
    requests = [search.request(made, ends) for made in found.made]
    holds = [
        made.member.slots * max(1, search.shapes[made.place].rounds(request.tr))
        for made, request in zip(found.made, requests, strict=True)
    ]
    share = min(1.0, search.demand.waiting / max(1, sum(holds)))
    return [
        CraftedRequest(
            request,
            search.now + made.member.start,
            max(1, int(share * most)),
            reason,
            search.places[made.place].name,
        )
        for made, request, most in zip(found.made, requests, holds, strict=True)
    ]
