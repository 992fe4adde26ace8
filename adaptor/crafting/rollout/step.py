"""One planning step of a site by the rollout heuristic. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import (
    Wanted,
    by_partition,
    craft_among,
    long_enough,
    one_by_one,
    rules_for,
    shut_for,
    situation_in,
    within,
)
from adaptor.crafting.coverage import coverage
from adaptor.crafting.needless import withdrawals
from adaptor.crafting.places import Place, places_of, with_crafted
from adaptor.crafting.refusal import hour_used_up, no_answer
from adaptor.crafting.rollout.bag import Bag, Home
from adaptor.crafting.rollout.rollout import Proposal, Rolled, rollout
from adaptor.crafting.rollout.serving import nobodys, pilots_by_demand
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Decision, Demand, Issue, PilotView, PlanningView, Withdraw, Withhold
from adaptor.crafting.spreading import spread
from adaptor.crafting.static import static
from adaptor.crafting.turns import turns
from adaptor.model import PilotState, QueueState


def why_not_by_rollout(view: PlanningView) -> str:
    """What this heuristic does not know of the waiting tasks, so that `adaptive` crafts; empty: nothing."""
    for demand in view.demands:
        if not demand.waiting:
            continue
        if demand.whole is not None:
            return "it is bought host by host, as the aims of its bag say"
        if demand.alone:
            return "the tasks run alone, one after another"
        if view.queue is not None and not RequestShape.for_demand(view.rules, view.queue, demand).widest:
            return "no request can hold a task"
    return ""


def by_rollout(view: PlanningView) -> list[Decision]:
    """The decisions for a site: which pilots nobody needs, then requests for the tasks that wait."""
    cover = coverage(view)
    decisions: list[Decision] = [*withdrawals(view, nobodys(view, cover.needless))]
    waiting = [index for index, demand in enumerate(view.demands) if demand.waiting]
    if not waiting:
        return decisions
    if view.queue is None:
        return [*decisions, Withhold(no_answer(view))]
    return [*decisions, *_requests(view, view.queue, cover.uncovered, waiting)]


def _requests(
    view: PlanningView, queue: QueueState, uncovered: Sequence[int], waiting: Sequence[int]
) -> list[Decision]:
    """For one demand after the other (see `turns`).

    Each sees the requests of those before it in the queue, and gives up places of its own pilots only.
    """
    places = _planned_once(places_of(view, queue))
    serving = pilots_by_demand(view, waiting)
    allowed = view.requests_left
    decisions: list[Decision] = []
    made: list[Issue] = []
    for index, peers in turns(view.demands, uncovered, waiting):
        wanted = Wanted(
            demand=view.demands[index],
            remaining=uncovered[index],
            allowed=math.ceil(allowed / peers),
            limit=view.rules.limits.max_pending_requests,
            heuristic=adaptive,
        )
        places = _with(places, made)
        shut = shut_for(view, queue, wanted.demand) if len(places) > 1 else {}
        found = _of_demand(view, places, wanted, serving[index], shut)
        made = [each for each in found if isinstance(each, Issue)]
        allowed -= len(made)
        decisions += found
    return decisions


def _planned_once(places: list[Place]) -> list[Place]:
    """What the queues leave free, for all that ask."""
    return [msgspec.structs.replace(place, free=place.free or Availability(place.queue)) for place in places]


def _with(places: list[Place], made: Sequence[Issue]) -> list[Place]:
    """With these requests in their queues."""
    for each in made:
        home = next(place for place in places if place.name == each.crafted.partition)
        places = with_crafted(places, home, [each.crafted], each.demand)
    return places


def _of_demand(
    view: PlanningView,
    places: list[Place],
    wanted: Wanted,
    pilots: Sequence[PilotView],
    shut: Mapping[str, str],
) -> Sequence[Decision]:
    demand = wanted.demand
    if demand.most == 0:
        return [Withhold(demand.why_most)]
    reasons = dict(shut)
    able = long_enough([place for place in places if place.name not in shut], demand, reasons)
    if not able:
        return [Withhold(by_partition(reasons))]
    homes = tuple(_home(place, wanted, usable=place.name in able) for place in places)
    rules = rules_for(view.rules, _but_most(demand))
    bag = Bag(
        now=view.now, demand=demand, rules=rules, homes=homes, pilots=tuple(pilots), allowed=wanted.allowed
    )
    return _decisions(view, demand, rollout(bag, _proposals(places, wanted, shut)))


def _home(place: Place, wanted: Wanted, *, usable: bool) -> Home:
    rules = rules_for(place.rules, _but_most(wanted.demand))
    return Home(
        name=place.name,
        queue=place.queue,
        rules=rules,
        shape=RequestShape.for_demand(rules, place.queue, wanted.demand),
        allowed=place.allowed if place.name else wanted.allowed,
        usable=usable,
        free=place.free,
    )


def _but_most(demand: Demand) -> Demand:
    """Without the bound on processors: it is one of all requests together, and a withdrawn one widens it."""
    return msgspec.structs.replace(demand, most=None)


def _decisions(view: PlanningView, demand: Demand, rolled: Rolled) -> Sequence[Decision]:
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


def _proposals(places: list[Place], wanted: Wanted, shut: Mapping[str, str]) -> list[Proposal]:
    """What the heuristics of the paper would ask for."""
    if not wanted.remaining or not wanted.allowed:
        return []
    if len(places) > 1:
        by_static = msgspec.structs.replace(wanted, heuristic=static)
        made = craft_among(places, wanted, shut, spread), craft_among(places, by_static, shut, one_by_one)
        return [each.crafted for each in made if each.crafted]
    (place,) = places
    situation = situation_in(place, wanted)
    found = [within(craft(situation), wanted.demand) for craft in (adaptive, static)]
    return [[msgspec.structs.replace(one, partition=place.name) for one in each] for each in found if each]
