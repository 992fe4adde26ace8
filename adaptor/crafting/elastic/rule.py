"""Pilots for the holes of now, and the rest in the queue (docs/elastic.md). Pure.

Each free processor gets a pilot that lasts until another job needs the processor. For the other tasks pilots
wait in the queue, with a walltime that is learned. A pilot runs tasks one after another and ends when no task
fits the rest of its time, so no processor idles behind the last tasks of another one. The fewer pilots a site
allows, the wider they are; for fewer than `NARROW_FROM`, `completion` compares whole sets of requests.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.crafting.choosing import Made, Wanted, opened, why_closed
from adaptor.crafting.completion.rule import by_completion
from adaptor.crafting.coverage import PilotCoverage
from adaptor.crafting.elastic.look import Look, at_risk
from adaptor.crafting.places import Place, with_crafted
from adaptor.crafting.serving import pilots_by_demand
from adaptor.crafting.situation import Demand, SiteRules, SiteState
from adaptor.model import CraftedRequest, PilotState


def by_holes(places: list[Place], wanted: Wanted) -> Made:
    """The pilots to make now for a demand, or the queued ones that are withdrawn.

    A bag with a deadline or a preference goes by `completion`, within the limits for few wide requests; so
    does every bag where the site allows few pilots.
    """
    if not places[0].site.narrow:
        return by_completion(places, wanted)
    if wanted.demand.paced:
        return _with_few(places, wanted)
    if wanted.demand.most == 0 and all(pilot.state is PilotState.RUNNING for pilot in wanted.pilots):
        return Made([], places, wanted.demand.why_most)
    seen = opened(places, wanted.demand)
    look = Look(seen, wanted)
    crafted = look.crafted()
    beside = _beside(places, crafted, wanted.demand) if crafted else places
    why = "" if crafted else look.why_nothing(why_closed(seen))
    return Made(crafted, beside, why, withdrawn=look.withdrawn, reshaped=look.reshaped)


def _with_few(places: list[Place], wanted: Wanted) -> Made:
    site = places[0].site
    wide = msgspec.structs.replace(site, rules=_wide(site.rules))
    own = sum(pilot.bag == wanted.demand.bag for pilot in site.requests)
    left = max(0, wide.rules.limits.max_pending_requests - own)
    few = [
        msgspec.structs.replace(place, site=wide, rules=_wide(place.rules), allowed=min(place.allowed, left))
        for place in places
    ]
    wanted = msgspec.structs.replace(wanted, allowed=min(wanted.allowed, left))
    made = by_completion(few, wanted)
    back = [
        msgspec.structs.replace(
            was,
            free=place.free,
            allowed=was.allowed - sum(new.partition == place.name for new in made.crafted),
        )
        for was, place in zip(places, made.places, strict=True)
    ]
    return msgspec.structs.replace(made, places=back)


def _wide(rules: SiteRules) -> SiteRules:
    return msgspec.structs.replace(rules, limits=msgspec.structs.replace(rules.limits, max_pilots=0))


def _beside(places: list[Place], crafted: Sequence[CraftedRequest], demand: Demand) -> list[Place]:
    """The places with these requests, which only what starts now keeps others from."""
    for home in places:
        now = [new for new in crafted if new.partition == home.name and new.predicted_start is not None]
        places = with_crafted(places, next(each for each in places if each.name == home.name), now, demand)
    return places


def unneeded(view: SiteState) -> PilotCoverage:
    """The queued pilots of demands without a waiting or threatened task, except those that running tasks may
    need next: the longest ones, one for each task in a pilot that may be too short for it."""
    needless: list[int] = []
    serving = pilots_by_demand(view, range(len(view.demands)))
    served = {pilot.id for pilots in serving.values() for pilot in pilots}
    for index, pilots in serving.items():
        demand = view.demands[index]
        if not demand.waiting and not demand.threat.tasks:
            queued = [pilot for pilot in pilots if pilot.state is PilotState.QUEUED]
            queued.sort(key=lambda pilot: (-pilot.request.tr, pilot.id))
            needless += [pilot.id for pilot in queued[at_risk(view, demand, pilots) :]]
    needless += [pilot.id for pilot in view.requests if pilot.id not in served and not pilot.leaving]
    return PilotCoverage(uncovered=[demand.waiting for demand in view.demands], needless=needless)
