"""The rollout heuristic: of several sets of requests, that which completes the bag first. Pure.

In the sense of Bertsekas and Castañon (1999): each candidate is judged by what follows if simple requests
are made after it. The candidates are what is there with the best requests beside it, the same without some
of the requests, and what `adaptive` and `static` propose.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.crafting.refusal import too_short
from adaptor.crafting.rollout.bag import Bag
from adaptor.crafting.rollout.wording import compared, completion, nothing_better
from adaptor.crafting.rollout.world import RequestSet, World
from adaptor.crafting.situation import PilotView
from adaptor.model import CraftedRequest, PilotState

WORTH_WITHDRAWING = 0.9
"""A queued request gives up its place for a completion that is sooner by this factor at least."""
WORTH_ENDING = 0.6
"""A request that runs is ended, and its unfinished tasks begin anew, for a completion that is sooner by this
factor at least."""
FORESEEN = 10.0
"""Requests of the longest time, one after the other: a bag that takes longer by all that is thought of its
tasks gives no place up, since which request is better depends on holes that nobody sees yet."""

Proposal = Sequence[CraftedRequest]


class Rolled(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    crafted: list[CraftedRequest]
    useless: list[tuple[int, str]] = []
    """Queued pilots that can run nothing, and why."""
    withdrawn: list[tuple[PilotView, str]]
    """Those withdrawn, or ended as they run, for a better request, and why."""
    reason: str
    """Why nothing else is done."""


def rollout(bag: Bag, proposals: Sequence[Proposal] = ()) -> Rolled:
    """Compare sets of requests by the expected completion of the bag, and say what leads to the best.

    Args:
        proposals: what other heuristics would ask for beside what is there.
    """
    useless = [pilot for pilot in bag.pilots if _too_short(pilot, bag)]
    if useless:
        told = [(each.id, too_short(each, [bag.demand])) for each in useless]
        return Rolled(crafted=[], useless=told, withdrawn=[], reason="")
    world = World(bag)
    kept = world.kept()
    if (better := _better(kept, world)) is not None:
        return better
    if bag.allowed <= 0:
        return Rolled(crafted=[], withdrawn=[], reason=nothing_better(world, kept))
    for proposal in proposals:
        allowed = proposal[: bag.allowed]
        proposed = world.with_these(allowed)
        if proposed.cost < kept.cost:
            return _as_proposed(world, proposed, allowed)
    crafted = _crafted(world, kept)[: bag.allowed]
    return Rolled(crafted=crafted, withdrawn=[], reason="" if crafted else nothing_better(world, kept))


def _better(kept: RequestSet, world: World) -> Rolled | None:
    """Without which requests the bag is done much sooner; None: without none."""
    if not len(kept.members) or min(world.ends(kept.members)) > FORESEEN * world.bag.max_tr:
        return None
    best = _instead_of(kept, world, _queued_sets(world.bag), WORTH_WITHDRAWING) or _instead_of(
        kept, world, _running_ones(world.bag), WORTH_ENDING
    )
    if best is None:
        return None
    why = compared(world, best, kept)
    return Rolled(crafted=[], withdrawn=[(pilot, why) for pilot in best.withdrawn], reason="")


def _instead_of(
    kept: RequestSet, world: World, sets: list[tuple[PilotView, ...]], worth: float
) -> RequestSet | None:
    """The best set without one of these sets of requests; None: none is sooner by the factor `worth`.

    It must not be later, either, if the holes that its requests take never come again.
    """
    best, least = None, worth * kept.cost
    planned = None
    for some in sets:
        found = world.without(some)
        if found.cost >= least:
            continue
        planned = world.as_planned(kept) if planned is None else planned
        if world.as_planned(found) <= planned:
            best, least = found, found.cost
    return best


def _queued_sets(bag: Bag) -> list[tuple[PilotView, ...]]:
    """What may be withdrawn: each request alone, and all."""
    queued = _withdrawable(bag)
    single: list[tuple[PilotView, ...]] = [(pilot,) for pilot in queued]
    return [*single, tuple(queued)] if len(queued) > 1 else single


def _running_ones(bag: Bag) -> list[tuple[PilotView, ...]]:
    """What may be ended, one at a time."""
    return [
        (pilot,)
        for pilot in bag.pilots
        if pilot.state is PilotState.RUNNING and pilot.job is not None and bag.rules.may_withdraw
        if pilot.started is not None and bag.now - pilot.started >= bag.times.settled
    ]


def _withdrawable(bag: Bag) -> list[PilotView]:
    """Of several queued requests the largest keeps its place: long waits end far sooner than planned."""
    queued = [pilot for pilot in bag.pilots if _may_be_withdrawn(pilot, bag)]
    if bag.one_at_a_time or not queued:
        return queued
    waiting = [pilot for pilot in bag.pilots if pilot.state is PilotState.QUEUED]
    kept = max(waiting, key=lambda each: (each.request.p * each.request.tr, -each.id))
    return [pilot for pilot in queued if pilot is not kept]


def _may_be_withdrawn(pilot: PilotView, bag: Bag) -> bool:
    asked = pilot.submitted if pilot.reshaped is None else pilot.reshaped
    settled = asked is None or bag.now - asked >= bag.times.settled
    return pilot.state is PilotState.QUEUED and pilot.job is not None and settled and bag.rules.may_withdraw


def _too_short(pilot: PilotView, bag: Bag) -> bool:
    """Whether no waiting task can run in a queued pilot."""
    needed = min(bag.demand.shortest, bag.max_tr)
    return pilot.state is PilotState.QUEUED and pilot.request.tr < needed


def _crafted(world: World, found: RequestSet) -> list[CraftedRequest]:
    """The requests of a set that are to be made, in the order of their starts."""
    ends, bag = world.ends(found.members), world.bag
    reason = completion(world, found)
    if bag.demand.most is not None:
        reason += f"; {bag.demand.why_most}"
    homes = [bag.homes[made.place] for made in found.made]
    requests = [world.request(made, ends) for made in found.made]
    holds = [
        made.slots * max(1, home.shape.rounds(request.tr))
        for made, home, request in zip(found.made, homes, requests, strict=True)
    ]
    share = min(1.0, bag.demand.waiting / max(1, sum(holds)))
    return [
        CraftedRequest(request, bag.now + made.start, max(1, int(share * most)), reason, home.name)
        for made, home, request, most in zip(found.made, homes, requests, holds, strict=True)
    ]


def _as_proposed(world: World, found: RequestSet, proposal: Proposal) -> Rolled:
    why = completion(world, found)
    crafted = [msgspec.structs.replace(each, reason=f"{each.reason}; {why}") for each in proposal]
    return Rolled(crafted=crafted, withdrawn=[], reason="")
