"""Several sites serve the same bags: which of the waiting tasks each of them asks processors for. Pure.

Each site plans alone (`adaptor.crafting.planner`), so if every one of them planned for all waiting
tasks, each task would be asked for once per site. One division of all sites at an instant prevents that:

1. The pilots in the system cover what they can be expected to take, wherever they are (`coverage`). A
   task that a pilot queued at one site covers is not asked for at another.
2. What is uncovered is divided so that all sites would be finished with it at the same time
   (`levelling`), given what each could do with requests that it may still make (`capacity`): the free
   slots of its queue, now and planned, its limits, how late its requests have been starting (`waits`),
   and how long the tasks run there.
3. A site that does not answer, or at which requests fail, gets nothing new. When it has been silent for
   a while, its queued pilots no longer cover anything, and of the running ones only what is still
   heard of: a site that fails slows the bag down and stops nothing. When it comes back, the pilots that
   are too many are needless and withdrawn.
4. A queued pilot that is much later than predicted is taken back if the others could have its tasks
   done clearly sooner (`lateness`).

5. A bag that is to be done for a cost or by a time comes with a wish where its tasks shall run (`wish`).
   What a site cannot do of that stays for later requests.

What a site can do includes the requests that it may make once its pilots end. Of what it could have
done in time it asks for no more than its limits let it have now; the rest stays for those later requests,
rather than to go to a site that would take longer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.coverage import joint_coverage
from adaptor.crafting.multisite.lateness import latest, why_taken_back
from adaptor.crafting.multisite.levelling import Level, level
from adaptor.crafting.multisite.reasons import SitePortion, why_covered, why_none, why_some
from adaptor.crafting.multisite.site_status import SitePart, SiteStatus
from adaptor.crafting.multisite.target_shares import TargetShares, granted
from adaptor.crafting.situation import Demand, TaskGroup


def divide(
    sites: Mapping[str, SiteStatus],
    groups: Sequence[TaskGroup],
    wishes: Mapping[int, TargetShares] | None = None,
) -> dict[str, SitePart]:
    """The part of every site, in one decision.

    The uncovered tasks of a group are in the parts of sites at which it may run, each once at most.
    `wishes`, by bag with pilots of its own: where its tasks shall run; all others are levelled.
    """
    covered = joint_coverage({name: each.reckoned for name, each in sites.items()}, groups)
    work = _Work(sites, groups, covered.uncovered, wishes or {})
    levels = work.divided()
    return {
        name: SitePart(
            uncovered=[each.shares.get(name, 0) for each in levels],
            needless=covered.needless,
            late={id: why for id, why in work.late(name).items() if id not in covered.needless},
            reason=work.reason(name, levels),
        )
        for name in sites
    }


def by_demand(part: SitePart, site: str, groups: Sequence[TaskGroup], demands: Sequence[Demand]) -> SitePart:
    """The part with its groups put together as the site's own demands are: by the shape of the tasks."""
    shapes = [_shape_of(demand) for demand in demands]
    uncovered = [0] * len(demands)
    for group, tasks in zip(groups, part.uncovered, strict=True):
        if tasks:
            uncovered[shapes.index(_shape_of(group.at[site]))] += tasks
    return msgspec.structs.replace(part, uncovered=uncovered)


def _shape_of(demand: Demand) -> tuple[int, int | None, int | None]:
    return demand.processors_per_task, demand.memory_per_task, demand.bag


class _Work:
    """The uncovered tasks on their way to the sites."""

    def __init__(
        self,
        sites: Mapping[str, SiteStatus],
        groups: Sequence[TaskGroup],
        uncovered: list[int],
        wishes: Mapping[int, TargetShares],
    ) -> None:
        self._sites = sites
        self._wishes = [_wish_of(group, wishes) for group in groups]
        self._groups = groups
        self._uncovered = uncovered
        self._now = max((site.view.now for site in sites.values()), default=0.0)
        self._allowed = {name: site.allowed for name, site in sites.items()}
        self._first: dict[str, float] = {}
        """When a task could be finished at a site with a new request."""

    def divided(self) -> list[Level]:
        """By group. The one with the largest uncovered share comes first, as when each site plans.

        Each gets an equal part of the requests that a site may still make; what it leaves goes to the next.
        """
        levels = [Level({}, self._now) for _ in self._groups]
        order = sorted(
            (index for index, tasks in enumerate(self._uncovered) if tasks),
            key=lambda index: -self._uncovered[index] / max(1, self._groups[index].waiting),
        )
        for turn, index in enumerate(order):
            levels[index] = self._level(index, order[turn:])
        return levels

    def _level(self, index: int, order: list[int]) -> Level:
        """Divide one group, the first in this order, and take off the requests that it needs now."""
        at = {name: demand for name, demand in self._groups[index].at.items() if name in self._sites}
        requests = {name: self._requests(name, order) for name in at}
        capacities = {
            name: self._sites[name].capacity(demand, requests[name], self._now) for name, demand in at.items()
        }
        wish = self._wishes[index]
        if wish is None:
            found = level(capacities, self._uncovered[index], self._now)
        else:
            found = granted(wish, capacities, self._uncovered[index], self._now)
        shares = {}
        for name, demand in at.items():
            most = self._sites[name].most(demand)
            shares[name] = min(found.shares[name], requests[name] * most)
            self._allowed[name] -= math.ceil(shares[name] / max(1, most))
            self._first[name] = min(self._first.get(name, math.inf), capacities[name].first)
        return msgspec.structs.replace(found, shares=shares)

    def _requests(self, name: str, order: list[int]) -> int:
        """The first group's part of the requests that the site may still make."""
        turns = sum(name in self._groups[index].at for index in order)
        return math.ceil(self._allowed[name] / turns)

    def late(self, name: str) -> dict[int, str]:
        """The pilot of a site that waits in vain while the other sites could do its tasks: one at a time."""
        pilot = latest(self._sites[name].view.pilots, self._now)
        if pilot is None:
            return {}
        for index, group in enumerate(self._groups):
            if name in group.at and group.waiting and group.at[name].bag == pilot.bag:
                held = self._sites[name].holds(pilot, group.at[name])
                tasks = min(group.waiting, held + self._uncovered[index])
                elsewhere = self._elsewhere(name, group, tasks)
                if elsewhere.assigned == tasks:
                    reason = why_taken_back(pilot, elsewhere, self._now)
                    return {pilot.id: reason} if reason else {}
        return {}

    def _elsewhere(self, name: str, group: TaskGroup, tasks: int) -> Level:
        """So many tasks divided among the other sites."""
        others = {
            other: self._sites[other].capacity(demand, self._allowed[other], self._now)
            for other, demand in group.at.items()
            if other != name and other in self._sites
        }
        return level(others, tasks, self._now)

    def reason(self, name: str, levels: list[Level]) -> str:
        mine = [index for index, group in enumerate(self._groups) if name in group.at]
        waiting = sum(self._groups[index].waiting for index in mine)
        uncovered = sum(self._uncovered[index] for index in mine)
        if not uncovered:
            pilots = {each: standing.reckoned.pilots for each, standing in self._sites.items()}
            return why_covered(pilots, waiting)
        if wished := [wish.reason for index in mine if (wish := self._wished(index)) is not None]:
            return "; ".join([self._portion(name, levels, mine).gets, *wished])
        portion = self._portion(name, levels, mine)
        site = self._sites[name]
        return why_some(portion) if portion.mine else why_none(portion, site.view, site.closed)

    def _wished(self, index: int) -> TargetShares | None:
        """What is wished of a group of which tasks are to be divided."""
        return self._wishes[index] if self._uncovered[index] else None

    def _portion(self, name: str, levels: list[Level], mine: list[int]) -> SitePortion:
        site = self._sites[name]
        waiting = sum(self._groups[index].waiting for index in mine)
        uncovered = sum(self._uncovered[index] for index in mine)
        return SitePortion(
            site=name,
            waiting=waiting,
            uncovered=uncovered,
            shares={
                other: sum(levels[index].shares.get(other, 0) for index in mine) for other in self._sites
            },
            seconds=max(levels[index].finish for index in mine) - self._now,
            first=self._first.get(name, math.inf) - self._now,
            late=site.delay(site.view.rules.limits.max_proc, self._now),
        )


def _wish_of(group: TaskGroup, wishes: Mapping[int, TargetShares]) -> TargetShares | None:
    """Tasks of one group either share pilots or are of one bag."""
    bag = next((demand.bag for demand in group.at.values()), None)
    return None if bag is None else wishes.get(bag)
