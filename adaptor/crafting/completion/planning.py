"""One planning step for a demand by the completion heuristic. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.choosing import (
    Made,
    Wanted,
    by_partition,
    craft_among,
    craft_in,
    long_enough,
    one_by_one,
    rules_for,
    shut_for,
    situation_in,
)
from adaptor.crafting.completion.bag import Bag, Home
from adaptor.crafting.completion.completion import complete
from adaptor.crafting.places import Place, with_crafted
from adaptor.crafting.refusal import hour_used_up, nothing_possible
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, PlanningView
from adaptor.crafting.spreading import spread
from adaptor.crafting.static import static
from adaptor.model import CraftedRequest


def by_completion(view: PlanningView, places: list[Place], wanted: Wanted) -> Made:
    """The requests that complete the tasks of a demand first, or what is withdrawn for them."""
    assert view.queue is not None
    demand = wanted.demand
    if demand.most == 0:
        return Made([], places, demand.why_most)
    shut = shut_for(view, view.queue, demand) if len(places) > 1 else {}
    reasons = dict(shut)
    able = long_enough([place for place in places if place.name not in shut], demand, reasons)
    homes = tuple(_home(place, demand, wanted.allowed, usable=place.name in able) for place in places)
    if not any(home.shape.widest for home in homes if home.place.usable):
        return Made([], places, by_partition(reasons) if shut else nothing_possible(situation_in(places[0], wanted)))
    bag = Bag(
        now=view.now,
        demand=demand,
        tasks=_tasks(wanted),
        rules=rules_for(view.rules, _but_most(demand)),
        homes=homes,
        pilots=wanted.pilots,
        allowed=wanted.allowed,
        may_withdraw=view.rules.may_withdraw and not wanted.part and demand.whole is None,
    )
    planned = complete(bag, lambda: _proposals(places, wanted, shut))
    for crafted in planned.crafted:
        home = next(place for place in places if place.name == crafted.partition)
        places = with_crafted(places, home, [crafted], demand)
    reason = hour_used_up(view, demand.waiting) if view.submissions_left == 0 else planned.reason
    return Made(planned.crafted, places, reason, planned.withdrawn)


def _tasks(wanted: Wanted) -> int:
    """Tasks that are to be completed here: where other sites share them, those that no pilot covers and as many
    as the pilots here hold."""
    demand = wanted.demand
    if not wanted.part:
        return demand.waiting + demand.running
    ours = sum(holding.processors or holding.request.p for holding in wanted.pilots)
    return min(demand.waiting, wanted.remaining + ours) + demand.running


def _home(place: Place, demand: Demand, allowed: int, *, usable: bool) -> Home:
    rules = rules_for(place.rules, _but_most(demand))
    there = msgspec.structs.replace(
        place, rules=rules, usable=usable, allowed=place.allowed if place.name else allowed
    )
    return Home(place=there, shape=RequestShape.for_demand(rules, place.queue, demand))


def _but_most(demand: Demand) -> Demand:
    """Without the bound on processors: it is one of all requests together, and a withdrawn one widens it."""
    return msgspec.structs.replace(demand, most=None)


def _proposals(places: list[Place], wanted: Wanted, shut: Mapping[str, str]) -> list[list[CraftedRequest]]:
    """What the heuristics of the paper would ask for."""
    if not wanted.remaining:
        return []
    if len(places) > 1:
        ways = spread, partial(one_by_one, static)
        made = [craft_among(places, wanted, shut, craft) for craft in ways]
    else:
        made = [craft_in(places, wanted, craft) for craft in (adaptive, static)]
    return [found.crafted for found in made if found.crafted]
