"""One planning step of a site by the rollout heuristic. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import Wanted, rules_for, situation_in, within
from adaptor.crafting.coverage import coverage
from adaptor.crafting.needless import withdrawals
from adaptor.crafting.places import Place, places_of, with_crafted
from adaptor.crafting.refusal import hour_used_up
from adaptor.crafting.rollout.rollout import Proposal, Rolled, rollout
from adaptor.crafting.rollout.serving import pilots_by_demand
from adaptor.crafting.rollout.world import Bag
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Decision, Demand, Issue, PilotView, PlanningView, Withdraw, Withhold
from adaptor.crafting.static import static
from adaptor.crafting.turns import turns
from adaptor.model import PilotState, QueueState


def why_not_by_rollout(view: PlanningView) -> str:
    """What this heuristic does not know of the waiting tasks, so that `adaptive` crafts; empty: nothing."""
    if view.rules.limits.partitions:
        return "the site has several partitions"
    for demand in view.demands:
        if not demand.waiting:
            continue
        if demand.whole is not None:
            return "it is bought host by host, as the aims of its bag say"
        if demand.alone:
            return "the tasks run alone, one after another"
        if not RequestShape.for_demand(view.rules, view.queue, demand).widest:
            return "no request can hold a task"
    return ""


def by_rollout(view: PlanningView, queue: QueueState) -> list[Decision]:
    """The decisions for a site with waiting tasks, for its demands one after the other (see `turns`).

    Each sees the requests of those before it in the queue, and gives up places of its own pilots only.
    """
    cover, (place,) = coverage(view), places_of(view, queue)
    place = msgspec.structs.replace(place, free=Availability(place.queue))  # planned once for all that ask
    waiting = [index for index, demand in enumerate(view.demands) if demand.waiting]
    serving = pilots_by_demand(view, waiting)
    allowed = max(
        0, view.rules.limits.max_pending_requests - sum(each.state.in_system for each in view.pilots)
    )
    if view.submissions_left is not None:
        allowed = min(allowed, view.submissions_left)
    nobodys = set(cover.needless) - {pilot.id for pilots in serving.values() for pilot in pilots}
    decisions: list[Decision] = [*withdrawals(view, nobodys)]
    for index, peers in turns(view.demands, cover.uncovered, waiting):
        wanted = Wanted(
            demand=view.demands[index],
            remaining=cover.uncovered[index],
            allowed=math.ceil(allowed / peers),
            limit=view.rules.limits.max_pending_requests,
            heuristic=adaptive,
        )
        found = _of_demand(view, place, wanted, serving[index])
        crafted = [each.crafted for each in found if isinstance(each, Issue)]
        (place,) = with_crafted([place], place, crafted, wanted.demand)
        allowed -= len(crafted)
        decisions += found
    return decisions


def _of_demand(
    view: PlanningView, place: Place, wanted: Wanted, pilots: Sequence[PilotView]
) -> Sequence[Decision]:
    demand = wanted.demand
    if demand.most == 0:
        return [Withhold(demand.why_most)]
    # Without the bound on processors, which a withdrawn request widens.
    rules = rules_for(place, msgspec.structs.replace(demand, most=None))
    bag = Bag(
        now=view.now,
        demand=demand,
        rules=rules,
        shape=RequestShape.for_demand(rules, place.queue, demand),
        queue=place.queue,
        pilots=tuple(pilots),
        allowed=wanted.allowed,
        free=place.free,
    )
    return _decisions(view, demand, rollout(bag, _proposals(place, wanted)))


def _decisions(view: PlanningView, demand: Demand, rolled: Rolled) -> Sequence[Decision]:
    if rolled.useless:
        return [Withdraw(pilot, why) for pilot, why in rolled.useless]
    if rolled.withdrawn:
        return [
            Withdraw(pilot.id, why, recraft=True, running=pilot.state is PilotState.RUNNING)
            for pilot, why in rolled.withdrawn
        ]
    if crafted := within(rolled.crafted, demand):
        return [Issue(each, demand) for each in crafted]
    if view.submissions_left == 0:
        return [Withhold(hour_used_up(view, demand.waiting))]
    return [Withhold(rolled.reason)]


def _proposals(place: Place, wanted: Wanted) -> list[Proposal]:
    """What the heuristics of the paper would ask for."""
    if not wanted.remaining or not wanted.allowed:
        return []
    situation = situation_in(place, wanted)
    found = [craft(situation) for craft in (adaptive, static)]
    return [some for each in found if (some := each[: len(within(each, wanted.demand))])]
