"""What the other sites do for the tasks of a site that plans for all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adaptor.crafting.coverage import slots_left
from adaptor.crafting.multisite.site_status import SiteStatus
from adaptor.crafting.serving import member_of, pilots_by_demand
from adaptor.crafting.situation import Elsewhere, Member, TaskGroup


def elsewhere(sites: Mapping[str, SiteStatus], groups: Sequence[TaskGroup], here: str) -> Sequence[Elsewhere]:
    """By group."""
    found: list[dict[int, Member]] = [{} for _ in groups]
    for name, site in sites.items():
        if name != here:
            for index, pilot, member in _members(site, name, groups):
                at = groups[index].at
                if here in at:  # in slots of the speed of this site
                    slots = member.slots * at[here].runtime / at[name].runtime
                    found[index][pilot] = member._replace(slots=slots)
    return found


def _members(site: SiteStatus, name: str, groups: Sequence[TaskGroup]) -> Iterator[tuple[int, int, Member]]:
    """The group and the id of each pilot of a site that still counts, and what it does for that group.

    A queued one starts as much later than planned as requests of its width do there.
    """
    served = [index for index, group in enumerate(groups) if name in group.at]
    demands = tuple(groups[index].at[name] for index in served)
    view = msgspec.structs.replace(site.counted_view, demands=demands)
    for place, pilots in pilots_by_demand(view, range(len(served))).items():
        for pilot in pilots:
            planned = site.free.starts.get(pilot.queued_as, view.now) if site.free else view.now
            wait = max(0.0, planned - view.now) + site.delay(pilot.request.p, view.now)
            slots = slots_left(pilot, demands[place], site.shape(demands[place]).unit)
            yield served[place], pilot.id, member_of(pilot, demands[place], slots, wait, view.now)
