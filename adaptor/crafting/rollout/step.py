"""One planning step of a site by the rollout heuristic. Pure."""

from __future__ import annotations

import msgspec

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import Wanted, situation_in
from adaptor.crafting.coverage import coverage
from adaptor.crafting.places import Place, places_of
from adaptor.crafting.refusal import hour_used_up
from adaptor.crafting.rollout.rollout import Proposal, rollout
from adaptor.crafting.rollout.world import Bag
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Decision, Demand, Issue, PlanningView, Withdraw, Withhold
from adaptor.crafting.static import static
from adaptor.model import PilotState, QueueState


def why_not_by_rollout(view: PlanningView) -> str:
    """What this heuristic does not know of the waiting tasks, so that `adaptive` crafts; empty: nothing."""
    if view.rules.limits.partitions:
        return "the site has several partitions"
    if len(view.demands) > 1:
        return "tasks of several sizes, or of several bags with pilots of their own, wait"
    for demand in view.demands:
        if demand.most is not None or demand.whole is not None or demand.longest is not None:
            return "a budget, a deadline or a preference bounds the requests"
        if demand.alone or demand.together is not None:
            return "not all tasks may run at the same time"
        if not RequestShape.for_demand(view.rules, view.queue, demand).widest:
            return "no request can hold a task"
    return ""


def by_rollout(view: PlanningView, queue: QueueState) -> list[Decision]:
    """The decisions for a site whose only demand has waiting tasks."""
    (demand,) = view.demands
    (place,) = places_of(view, queue)
    place = msgspec.structs.replace(place, free=Availability(place.queue))  # planned once for all that ask
    shape = RequestShape.for_demand(view.rules, place.queue, demand)
    pilots = tuple(pilot for pilot in view.pilots if pilot.state.in_system)
    allowed = max(0, view.rules.limits.max_pending_requests - len(pilots))
    if view.submissions_left is not None:
        allowed = min(allowed, view.submissions_left)
    bag = Bag(
        now=view.now,
        demand=demand,
        rules=view.rules,
        shape=shape,
        queue=place.queue,
        pilots=tuple(pilot for pilot in pilots if not pilot.leaving),
        allowed=allowed,
        free=place.free,
    )
    rolled = rollout(bag, _proposals(view, place, demand, bag.allowed))
    if rolled.useless:
        return [Withdraw(pilot, why) for pilot, why in rolled.useless]
    if rolled.withdrawn:
        return [
            Withdraw(pilot.id, why, recraft=True, running=pilot.state is PilotState.RUNNING)
            for pilot, why in rolled.withdrawn
        ]
    if rolled.crafted:
        return [Issue(each, demand) for each in rolled.crafted]
    if view.submissions_left == 0:
        return [Withhold(hour_used_up(view, demand.waiting))]
    return [Withhold(rolled.reason)]


def _proposals(view: PlanningView, place: Place, demand: Demand, allowed: int) -> list[Proposal]:
    """What the heuristics of the paper would ask for."""
    remaining = sum(coverage(view).uncovered)
    if not remaining or not allowed:
        return []
    wanted = Wanted(
        demand=demand,
        remaining=remaining,
        allowed=allowed,
        limit=view.rules.limits.max_pending_requests,
        heuristic=adaptive,
    )
    situation = situation_in(place, wanted)
    return [found for craft in (adaptive, static) if (found := craft(situation))]
