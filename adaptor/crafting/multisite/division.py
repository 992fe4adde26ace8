"""Divide the waiting tasks among several sites that serve the same bags. Pure.

Each site plans alone (`adaptor.crafting.planner`). If every site planned for all waiting tasks, each task
would be requested once per site. One division for all sites at an instant prevents that:

1. The pilots in the system cover waiting tasks, at whatever site they are (`coverage`). No site requests
   processors for a task that a pilot of another site covers.
2. The uncovered tasks are divided so that all sites would finish at the same time (`capacity.level`). The
   capacity of a site (`capacity`) follows from the free slots of its queue, now and planned, its limits,
   the lateness of its requests (`waits`) and the task runtime there.
3. A site that does not answer, or that refuses requests, gets no new tasks. After a longer silence its
   queued pilots cover no tasks, and its running pilots only as far as their workers send messages. So a
   failing site slows the bag down but does not stop it. When the site returns, surplus pilots are
   needless and withdrawn.
4. A queued pilot that is much later than predicted is withdrawn if the other sites could finish its tasks
   clearly sooner (`site_status.latest`).
5. A bag with a cost or a deadline comes with target shares (`TargetShares`). Tasks beyond a site's
   capacity stay for later requests.

The capacity includes requests that a site may make when its pilots end. A site requests only what its
limits allow now; the rest of its share stays for those later requests instead of a slower site.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adaptor.crafting.coverage import joint_coverage, largest_share_first, slots_left
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.multisite.capacity import Level, TargetShares, granted, level
from adaptor.crafting.multisite.site_status import SitePart, SiteStatus, latest, why_taken_back
from adaptor.crafting.reasons import limit_used_up, no_answer
from adaptor.crafting.serving import member_of, pilots_by_demand
from adaptor.crafting.situation import Demand, Elsewhere, Member, SiteState, TaskGroup
from adaptor.units import counted, format_duration


class SitePortion(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that one site gets, besides those of the other sites."""

    site: str
    waiting: int
    uncovered: int
    """Waiting tasks that no pilot in the system covers."""
    shares: dict[str, int]
    """Tasks by site."""
    seconds: float
    """Seconds until the last task of all shares is expected to end."""
    first: float
    """Seconds until a first task could end here; may be `math.inf`."""
    late: float
    """Seconds by which requests here start later than predicted."""

    @property
    def mine(self) -> int:
        return self.shares[self.site]

    @property
    def gets(self) -> str:
        return f"gets {self.mine or 'none'} of {counted(self.waiting, 'waiting task')}"

    @property
    def others(self) -> str:
        """Shares of the others, in words: `near gets 280, pilots in the system cover 20`."""
        later, covered = self.uncovered - sum(self.shares.values()), self.waiting - self.uncovered
        parts = [f"{name} gets {tasks}" for name, tasks in self.shares.items() if name != self.site]
        parts += [f"pilots in the system cover {covered}"] * bool(covered)
        parts += [f"{later} stay for later requests"] * bool(later)
        return ", ".join(parts)


def why_some(portion: SitePortion) -> str:
    late = f"; requests start {format_duration(portion.late)} late here" if portion.late >= 1 else ""
    beside = f" if {portion.others}" if portion.others else ""
    return f"{portion.gets}: all can be done in {format_duration(portion.seconds)}{beside}{late}"


def why_none(portion: SitePortion, view: SiteState, closed: str) -> str:
    if closed:
        return f"{portion.gets}: {closed}; {portion.others}"
    if view.queue is None:
        return no_answer(view)
    limit = view.rules.limits.in_system
    if len(view.requests) >= limit:
        return f"{portion.gets}: {limit_used_up(view)}; {portion.others}"
    if math.isinf(portion.first):
        return f"{portion.gets}: no free slot here is wide and long enough for a task; {portion.others}"
    return (
        f"{portion.gets}: a first task could be done here in {format_duration(portion.first)}, all of them "
        f"elsewhere in {format_duration(portion.seconds)}; {portion.others}"
    )


def divide(
    sites: Mapping[str, SiteStatus],
    groups: Sequence[TaskGroup],
    targets: Mapping[int, TargetShares | None] | None = None,
) -> dict[str, SitePart]:
    """The parts of all sites, in one decision.

    Each uncovered task is in the part of at most one site, at which it may run.

    Args:
        sites: by name.
        groups: the tasks to divide.
        targets: by bag that is divided by cost or time: its target shares; None: levelled, since there are
            none. A site that plans by completion plans for all tasks of the other bags.
    """
    covered = joint_coverage({name: site.counted_view for name, site in sites.items()}, groups)
    work = _Work(sites, groups, covered.uncovered, targets or {})
    levels = work.divided()
    return {
        name: SitePart(
            uncovered=[each.shares.get(name, 0) for each in levels],
            needless=covered.needless,
            late={id: why for id, why in work.late(name).items() if id not in covered.needless},
            reason=work.reason(name, levels),
            replans=(replans := work.replans(name)),
            elsewhere=elsewhere(sites, groups, name) if any(replans) else [{}] * len(groups),
        )
        for name in sites
    }


def by_demand(part: SitePart, site: str, groups: Sequence[TaskGroup], demands: Sequence[Demand]) -> SitePart:
    """The part with its tasks summed up by the site's own demands instead of by group."""
    place = {demand.shape: index for index, demand in enumerate(demands)}
    uncovered, replans = [0] * len(demands), [True] * len(demands)
    beside: list[Elsewhere] = [{}] * len(demands)
    for group, tasks, again, there in zip(groups, part.uncovered, part.replans, part.elsewhere, strict=True):
        if site in group.at and (index := place.get(group.at[site].shape)) is not None:
            uncovered[index] += tasks
            replans[index] &= again
            beside[index] = {**beside[index], **there}  # a pilot counts once
    return msgspec.structs.replace(part, uncovered=uncovered, replans=replans, elsewhere=beside)


class _Work:
    """One division: the uncovered tasks, and the requests that each site may still make."""

    def __init__(
        self,
        sites: Mapping[str, SiteStatus],
        groups: Sequence[TaskGroup],
        uncovered: list[int],
        targets: Mapping[int, TargetShares | None],
    ) -> None:
        self._sites = sites
        bags = [next((demand.bag for demand in group.at.values()), None) for group in groups]
        self._targets = [None if bag is None else targets.get(bag) for bag in bags]
        self._compared = [bag in targets for bag in bags]  # by group: whether it is divided by cost or time
        self._groups = groups
        self._open = [
            {
                name: demand
                for name, demand in group.at.items()
                if name in sites and demand.shape not in sites[name].closed_to
            }
            for group in groups
        ]
        """Demand at each site that may get requests now, by group."""
        self._uncovered = uncovered
        self._now = max((site.view.now for site in sites.values()), default=0.0)
        self._allowed = {name: site.allowed for name, site in sites.items()}
        self._first: dict[str, float] = {}
        """Earliest end of a task in a new request, by site (epoch seconds)."""

    def divided(self) -> list[Level]:
        """The shares by group. The group with the largest uncovered share goes first, as in the planner.

        Each group gets an equal part of the requests that a site may still make; the next group gets the
        rest.
        """
        levels = [Level({}, self._now) for _ in self._groups]
        served = (index for index, tasks in enumerate(self._uncovered) if tasks)
        order = largest_share_first(served, self._uncovered, [group.waiting for group in self._groups])
        for turn, index in enumerate(order):
            levels[index] = self._level(index, order[turn:])
        return levels

    def _level(self, index: int, order: list[int]) -> Level:
        """Divide the first group of `order` and subtract the requests that it needs now."""
        at = self._open[index]
        # The groups that follow get equal parts of the requests that a site may still make.
        turns = Counter(name for other in order for name in self._open[other])
        requests = {name: math.ceil(self._allowed[name] / turns[name]) for name in at}
        capacities = {
            name: self._sites[name].capacity(demand, requests[name], self._now) for name, demand in at.items()
        }
        target = self._targets[index]
        if target is None:
            found = level(capacities, self._uncovered[index], self._now)
        else:
            found = granted(target, capacities, self._uncovered[index], self._now)
        shares = {}
        for name, demand in at.items():
            most = self._sites[name].most(demand)
            shares[name] = min(found.shares[name], requests[name] * most)
            self._allowed[name] -= math.ceil(shares[name] / max(1, most))
            self._first[name] = min(self._first.get(name, math.inf), capacities[name].first)
        return msgspec.structs.replace(found, shares=shares)

    def replans(self, name: str) -> list[bool]:
        """By group: whether the site plans for all of its waiting tasks."""
        return [self._replans(name) and not compared for compared in self._compared]

    def _replans(self, name: str) -> bool:
        return HEURISTICS[self._sites[name].view.heuristic].replans

    def late(self, name: str) -> dict[int, str]:
        """At most one late pilot whose tasks the other sites could finish clearly sooner, with the reason."""
        pilot = latest(self._sites[name].view.requests, self._now)
        if pilot is None:
            return {}
        for index, group in enumerate(self._groups):
            if name in group.at and group.waiting and group.at[name].bag == pilot.bag:
                held = self._sites[name].holds(pilot, group.at[name])
                tasks = min(group.waiting, held + self._uncovered[index])
                others = {
                    other: self._sites[other].capacity(demand, self._allowed[other], self._now)
                    for other, demand in self._open[index].items()
                    if other != name
                }
                elsewhere = level(others, tasks, self._now)
                if elsewhere.assigned == tasks:
                    reason = why_taken_back(pilot, elsewhere, self._now)
                    return {pilot.id: reason} if reason else {}
        return {}

    def reason(self, name: str, levels: list[Level]) -> str:
        mine = [index for index, group in enumerate(self._groups) if name in group.at]
        waiting = sum(self._groups[index].waiting for index in mine)
        uncovered = sum(self._uncovered[index] for index in mine)
        tasks = counted(waiting, "waiting task")
        pilots = {
            other: f"{len(there.counted_view.requests)} at {other}" for other, there in self._sites.items()
        }
        if self._replans(name) and not any(self._compared[index] for index in mine):
            others = ", ".join(there for other, there in pilots.items() if other != name)
            return f"plans for {tasks} besides the pilots of other sites ({others})"
        if not uncovered:
            return f"the pilots in the system ({', '.join(pilots.values())}) already cover the {tasks}"
        targets = [self._targets[index] for index in mine if self._uncovered[index]]
        if targeted := [target.reason for target in targets if target is not None]:
            return "; ".join([self._portion(name, levels, mine).gets, *targeted])
        portion = self._portion(name, levels, mine)
        site = self._sites[name]
        return why_some(portion) if portion.mine else why_none(portion, site.view, self._closed(name, mine))

    def _closed(self, name: str, mine: Sequence[int]) -> str:
        """Why a site gets no requests for any of these groups now; empty: it may get some."""
        site = self._sites[name]
        reasons = [site.closed_to.get(self._groups[index].at[name].shape, "") for index in mine]
        return site.closed or (reasons[0] if reasons and all(reasons) else "")

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


def elsewhere(sites: Mapping[str, SiteStatus], groups: Sequence[TaskGroup], here: str) -> Sequence[Elsewhere]:
    """Work of the other sites by group."""
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
