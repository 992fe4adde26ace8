"""The completion heuristic: of several sets of requests, that which completes the bag first. Pure.

The sets are what is there with the best requests beside it, the same without some of the requests, and what
`adaptive` and `static` would ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from adaptor.crafting.completion.bag import Bag
from adaptor.crafting.completion.search import Choice, Search
from adaptor.crafting.completion.sets import places_for
from adaptor.crafting.completion.wording import compared, completion, nothing_better
from adaptor.crafting.refusal import too_short
from adaptor.crafting.situation import PilotView, Withdraw
from adaptor.model import CraftedRequest, PilotState

WORTH_WITHDRAWING = places_for(0.9)
"""A queued request gives up its place for a completion that is sooner by this factor at least."""
WORTH_ENDING = places_for(0.6)
"""A request that runs is ended, and its unfinished tasks begin anew, for a completion that is sooner by this
factor at least."""
SLOW = 0.3
"""Nor may the completion be later if what follows has this speed only."""
FORESEEN = 10.0
"""Requests of the longest time, one after the other: a bag that takes longer by all that is thought of its
tasks gives no place up, since which request is better depends on holes that nobody sees yet."""
WEIGHED = 8
"""Queued requests that are weighed one by one at most, the newest."""

Proposals = Callable[[], list[list[CraftedRequest]]]
"""What other heuristics would ask for beside what is there."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    crafted: list[CraftedRequest] = []
    withdrawn: list[Withdraw] = []
    reason: str = ""
    """Why nothing is done."""


def complete(bag: Bag, proposals: Proposals) -> Planned:
    """Compare sets of requests by the expected completion of the bag, and say what leads to the best."""
    useless = [pilot for pilot in bag.pilots if _too_short(pilot, bag)]
    if useless:
        return Planned(
            withdrawn=[Withdraw(pilot.id, too_short(pilot, [bag.demand])) for pilot in useless]
        )
    search = Search(bag)
    kept = search.kept()
    if (better := _better(kept, search)) is not None:
        return Planned(withdrawn=better)
    if bag.allowed > 0:
        crafted = _proposed(search, kept, proposals()) or _crafted(search, kept)
        if crafted:
            return Planned(crafted=crafted[: bag.allowed])
    return Planned(reason=nothing_better(search, kept))


def _better(kept: Choice, search: Search) -> list[Withdraw] | None:
    """Without which requests the bag is done much sooner; None: without none."""
    bag = search.bag
    if not kept.set.members or min(kept.set.ends) > FORESEEN * bag.max_tr:
        return None
    best = _instead_of(kept, search, _queued_sets(bag), WORTH_WITHDRAWING) or _instead_of(
        kept, search, _running_ones(bag), WORTH_ENDING
    )
    if best is None:
        return None
    why = compared(search, best, kept)
    return [
        Withdraw(pilot.id, why, recraft=True, running=pilot.state is PilotState.RUNNING)
        for pilot in best.withdrawn
    ]


def _instead_of(
    kept: Choice, search: Search, sets: list[tuple[PilotView, ...]], worth: float
) -> Choice | None:
    """The best choice without one of these sets of requests; None: none is sooner by `worth`."""
    best, least = None, kept.set.worth - worth
    slow = math.inf
    for withdrawn in sets:
        found = search.without(withdrawn)
        if found.set.worth >= least:
            continue
        slow = kept.set.at_pace(SLOW) if slow == math.inf else slow
        if found.set.at_pace(SLOW) <= slow:
            best, least = found, found.set.worth
    return best


def _queued_sets(bag: Bag) -> list[tuple[PilotView, ...]]:
    """What may be withdrawn: each request alone, and all.

    Of several the largest keeps its place: long waits end far sooner than planned.
    """
    waiting = [pilot for pilot in bag.pilots if pilot.state is PilotState.QUEUED]
    kept = max(waiting, key=lambda pilot: (pilot.request.area, -pilot.id), default=None)
    queued = [
        pilot for pilot in waiting if bag.may_give_up(pilot) and (bag.one_at_a_time or pilot is not kept)
    ]
    single: list[tuple[PilotView, ...]] = [(pilot,) for pilot in queued[-WEIGHED:]]
    return [*single, tuple(queued)] if len(queued) > 1 else single


def _running_ones(bag: Bag) -> list[tuple[PilotView, ...]]:
    """What may be ended, one at a time."""
    running = [pilot for pilot in bag.pilots if pilot.state is PilotState.RUNNING and bag.may_give_up(pilot)]
    return [(pilot,) for pilot in running[-WEIGHED:]]


def _too_short(pilot: PilotView, bag: Bag) -> bool:
    """Whether no waiting task can run in a queued pilot."""
    needed = min(bag.demand.shortest, bag.max_tr)
    return pilot.state is PilotState.QUEUED and pilot.request.tr < needed


def _proposed(
    search: Search, kept: Choice, proposals: Sequence[list[CraftedRequest]]
) -> list[CraftedRequest]:
    """The first proposal that completes the bag sooner; empty: none does."""
    for proposal in proposals:
        proposal = proposal[: search.bag.allowed]
        found = search.with_these(proposal)
        if found.set.worth < kept.set.worth:
            why = completion(search, found)
            return [msgspec.structs.replace(each, reason=f"{each.reason}; {why}") for each in proposal]
    return []


def _crafted(search: Search, found: Choice) -> list[CraftedRequest]:
    """The requests of a choice that are to be made, in the order of their starts."""
    bag, ends = search.bag, found.set.ends
    reason = completion(search, found)
    if bag.demand.most is not None:
        reason += f"; {bag.demand.why_most}"
    requests = [search.request(made, ends) for made in found.made]
    holds = [
        made.member.slots * max(1, bag.homes[made.home].shape.rounds(request.tr))
        for made, request in zip(found.made, requests, strict=True)
    ]
    share = min(1.0, bag.demand.waiting / max(1, sum(holds)))
    return [
        CraftedRequest(
            request,
            bag.now + made.member.start,
            max(1, int(share * most)),
            reason,
            bag.homes[made.home].place.name,
        )
        for made, request, most in zip(found.made, requests, holds, strict=True)
    ]
