"""Divide the waiting tasks among several sites that serve the same bags. Pure.

Each site plans alone (`adaptor.crafting.planner`). If every site planned for all waiting tasks, each task
would be requested once per site. One division for all sites at an instant prevents that:

1. The pilots in the system cover waiting tasks, at whatever site they are (`coverage`). No site requests
   processors for a task that a pilot of another site covers.
2. The uncovered tasks are divided so that all sites would finish at the same time (`capacity.level`). The
   capacity of a site (`capacity`) is that of its soonest partition. It follows from the free slots of the
   queue there, now and planned, the limits, the lateness of requests (`waits`) and the task runtime.
3. A site that does not answer, or that refuses requests, gets no new tasks. After a longer silence its
   queued pilots cover no tasks, and its running pilots only as far as their workers send messages. So a
   failing site slows the bag down but does not stop it. When the site returns, surplus pilots are
   needless and withdrawn.
4. A queued pilot that is much later than predicted is withdrawn if the other sites could finish its tasks
   clearly sooner (`latest`).
5. A bag with a cost or a deadline comes with target shares (`TargetShares`). Tasks beyond a site's
   capacity stay for later requests.

The capacity includes requests that a site may make when its pilots end. A site requests only what its
limits allow now; the rest of its share stays for those later requests instead of a slower site.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from adaptor.crafting.coverage import joint_coverage, largest_share_first, slots_left
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.multisite.capacity import Level, TargetShares, capacity_of, granted, level
from adaptor.crafting.places import Place, home_of
from adaptor.crafting.reasons import limit_used_up
from adaptor.crafting.serving import member_of, pilots_by_demand
from adaptor.crafting.situation import Demand, Elsewhere, Member, PilotView, TaskGroup
from adaptor.units import counted, format_duration

TOLERATED = 300.0  # seconds of lateness that never cause a withdrawal
CLEARLY = 0.5  # the other sites are clearly sooner if they need at most this share of the time


class SitePart(msgspec.Struct, frozen=True, kw_only=True):
    """The waiting tasks for which one site makes requests."""

    uncovered: list[int]
    """Tasks for which the site requests processors, by group."""
    needless: list[int]
    """Ids of pilots without a task, at any site."""
    late: dict[int, str] = {}
    """Queued pilots of the site to withdraw because they are late, by id, with the reason."""
    reason: str = ""
    """Why the site gets these tasks, in one sentence with the numbers; empty: it is the only one."""
    replans: list[bool]
    """By group: whether the site plans for all waiting tasks besides the work of other sites; else it gets
    what is uncovered here, as the group was divided by cost or time."""
    elsewhere: Sequence[Elsewhere]
    """Work of other sites by group, where the site replans."""
    places: Sequence[Place] = ()
    """The places of the site as the division has planned them; empty: there was no division."""


def divide(
    sites: Mapping[str, Sequence[Place]],
    groups: Sequence[TaskGroup],
    targets: Mapping[int, TargetShares | None] | None = None,
) -> dict[str, SitePart]:
    """The parts of all sites, in one decision.

    Each uncovered task is in the part of at most one site, at which it may run.

    Args:
        sites: the places of each, by name.
        groups: the tasks to divide.
        targets: by bag that is divided by cost or time: its target shares; None: levelled, since there are
            none. A site that plans by completion plans for all tasks of the other bags.
    """
    covered = joint_coverage({name: places[0].site for name, places in sites.items()}, groups)
    division = _Division(sites, groups, covered.uncovered, targets or {})
    levels = division.divided()
    return {
        name: SitePart(
            uncovered=[each.shares.get(name, 0) for each in levels],
            needless=covered.needless,
            late={id: why for id, why in division.late(name).items() if id not in covered.needless},
            reason=division.reason(name, levels),
            replans=(replans := division.replans(name)),
            elsewhere=elsewhere(sites, groups, name) if any(replans) else [{}] * len(groups),
            places=places,
        )
        for name, places in sites.items()
    }


def by_demand(part: SitePart, site: str, groups: Sequence[TaskGroup], demands: Sequence[Demand]) -> SitePart:
    """The part with its tasks summed up by the site's own demands instead of by group."""
    numbers = {demand.shape: number for number, demand in enumerate(demands)}
    uncovered, replans = [0] * len(demands), [True] * len(demands)
    beside: list[Elsewhere] = [{}] * len(demands)
    for group, tasks, again, there in zip(groups, part.uncovered, part.replans, part.elsewhere, strict=True):
        if site in group.at and (number := numbers.get(group.at[site].shape)) is not None:
            uncovered[number] += tasks
            replans[number] &= again
            beside[number] = {**beside[number], **there}  # a pilot counts once
    return msgspec.structs.replace(part, uncovered=uncovered, replans=replans, elsewhere=beside)


class _Division:
    """One division: the uncovered tasks, and the requests that each site may still make."""

    def __init__(
        self,
        sites: Mapping[str, Sequence[Place]],
        groups: Sequence[TaskGroup],
        uncovered: list[int],
        targets: Mapping[int, TargetShares | None],
    ) -> None:
        self._places = sites
        self._sites = {name: places[0].site for name, places in sites.items()}
        bags = [next((demand.bag for demand in group.at.values()), None) for group in groups]
        self._targets = [None if bag is None else targets.get(bag) for bag in bags]
        self._compared = [bag in targets for bag in bags]  # by group: whether it is divided by cost or time
        self._groups = groups
        self._open = [
            {
                name: demand
                for name, demand in group.at.items()
                if name in sites and (demand.shape, "") not in self._sites[name].avoided
            }
            for group in groups
        ]
        """Demand at each site that may get requests now, by group."""
        self._uncovered = uncovered
        self._now = max((site.now for site in self._sites.values()), default=0.0)
        self._allowed = {name: site.requests_left for name, site in self._sites.items()}
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
        tasks = self._uncovered[index]
        capacities = {
            name: capacity_of(self._places[name], demand, tasks, requests[name], self._now)
            for name, demand in at.items()
        }
        target = self._targets[index]
        if target is None:
            found = level(capacities, tasks, self._now)
        else:
            found = granted(target, capacities, tasks, self._now)
        shares = {}
        for name in at:
            shape = capacities[name].shape
            most = shape.holds(shape.widest, shape.rules.limits.max_tr)
            shares[name] = min(found.shares[name], requests[name] * most)
            self._allowed[name] -= math.ceil(shares[name] / max(1, most))
            self._first[name] = min(self._first.get(name, math.inf), capacities[name].first)
        return msgspec.structs.replace(found, shares=shares)

    def replans(self, name: str) -> list[bool]:
        """By group: whether the site plans for all of its waiting tasks."""
        return [self._replans(name) and not compared for compared in self._compared]

    def _replans(self, name: str) -> bool:
        return HEURISTICS[self._sites[name].heuristic].replans

    def late(self, name: str) -> dict[int, str]:
        """At most one late pilot whose tasks the other sites could finish clearly sooner, with the reason."""
        pilot = latest(self._sites[name].requests, self._now)
        if pilot is None:
            return {}
        for index, group in enumerate(self._groups):
            if name in group.at and group.waiting and group.at[name].bag == pilot.bag:
                shape = home_of(pilot, self._places[name]).shape(group.at[name])
                held = shape.holds(pilot.request.p, pilot.request.tr)
                tasks = min(group.waiting, held + self._uncovered[index])
                others = {
                    other: capacity_of(self._places[other], demand, tasks, self._allowed[other], self._now)
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
        pilots = {other: f"{len(there.requests)} at {other}" for other, there in self._sites.items()}
        if self._replans(name) and not any(self._compared[index] for index in mine):
            others = ", ".join(there for other, there in pilots.items() if other != name)
            return f"plans for {tasks} besides the pilots of other sites ({others})"
        if not uncovered:
            return f"the pilots in the system ({', '.join(pilots.values())}) already cover the {tasks}"
        shares = {other: sum(levels[index].shares.get(other, 0) for index in mine) for other in self._sites}
        gets = f"gets {shares[name] or 'none'} of {tasks}"
        targets = [self._targets[index] for index in mine if self._uncovered[index]]
        if targeted := [target.reason for target in targets if target is not None]:
            return "; ".join([gets, *targeted])
        beside = _beside(name, shares, uncovered, waiting - uncovered)
        end = format_duration(max(levels[index].finish for index in mine) - self._now)
        if not shares[name]:
            return f"{gets}: {self._why_none(name, mine, end)}; {beside}"
        site = self._sites[name]
        late = site.delay(site.rules.limits.max_proc, self._now)
        why = f"all can be done in {end}" + (f" if {beside}" if beside else "")
        return f"{gets}: {why}" + (f"; requests start {format_duration(late)} late here" if late >= 1 else "")

    def _why_none(self, name: str, mine: Sequence[int], end: str) -> str:
        """Why a site gets no task of these groups, all of which are done elsewhere in `end`."""
        site, first = self._sites[name], self._first.get(name, math.inf) - self._now
        avoided = [site.avoided.get((self._groups[index].at[name].shape, ""), "") for index in mine]
        if closed := site.closed or (avoided[0] if all(avoided) else ""):
            return closed
        if len(site.requests) >= site.rules.limits.in_system:
            return limit_used_up(site)
        if math.isinf(first):
            return "no free slot here is wide and long enough for a task"
        return f"a first task could be done here in {format_duration(first)}, all of them elsewhere in {end}"


def _beside(name: str, shares: Mapping[str, int], uncovered: int, covered: int) -> str:
    """Tasks that the site does not get, in words: `near gets 280, pilots in the system cover 20`."""
    later = uncovered - sum(shares.values())
    parts = [f"{other} gets {tasks}" for other, tasks in shares.items() if other != name]
    parts += [f"pilots in the system cover {covered}"] * bool(covered)
    parts += [f"{later} stay for later requests"] * bool(later)
    return ", ".join(parts)


def latest(pilots: Iterable[PilotView], now: float) -> PilotView | None:
    """The latest pilot of those that have waited for more than twice the predicted time; None: no such."""
    late = [pilot for pilot in pilots if pilot.lateness(now) > max(TOLERATED, _predicted_wait(pilot))]
    return max(late, key=lambda pilot: (pilot.lateness(now), pilot.id), default=None)


def _predicted_wait(pilot: PilotView) -> float:
    if pilot.predicted_start is None or pilot.submitted is None:
        return 0.0
    return pilot.predicted_start - pilot.submitted


def why_taken_back(pilot: PilotView, elsewhere: Level, now: float) -> str:
    """Why the other sites should run the tasks of a late pilot; empty: they should not.

    The start of a late pilot is unknown. This rule assumes that the pilot waits for its present lateness
    once more, so both choices lose at most as much time as the pilot lost so far (the rule of the ski
    rental problem). The other sites must be clearly sooner, by half: the withdrawal teaches the lateness
    of this site (`WaitLearner.gave_up`), and so the tasks do not return to it at once.
    """
    late = pilot.lateness(now)
    here, there = late + pilot.request.tr, elsewhere.finish - now
    if there > CLEARLY * here:
        return ""
    sites = " and ".join(name for name, tasks in sorted(elsewhere.shares.items()) if tasks)
    return (
        f"it should have started {format_duration(late)} ago; {sites} can finish its tasks in "
        f"{format_duration(there)}"
    )


def elsewhere(
    sites: Mapping[str, Sequence[Place]], groups: Sequence[TaskGroup], here: str
) -> Sequence[Elsewhere]:
    """Work of the other sites by group."""
    found: list[dict[int, Member]] = [{} for _ in groups]
    for name, places in sites.items():
        if name != here:
            for index, pilot, member in _members(places, name, groups):
                at = groups[index].at
                if here in at:  # in slots of the speed of this site
                    slots = member.slots * at[here].runtime / at[name].runtime
                    found[index][pilot] = member._replace(slots=slots)
    return found


def _members(
    places: Sequence[Place], name: str, groups: Sequence[TaskGroup]
) -> Iterator[tuple[int, int, Member]]:
    """The group and the id of each pilot of a site, and what it does for that group.

    A queued one starts as much later than planned as requests of its width do there.
    """
    served = [index for index, group in enumerate(groups) if name in group.at]
    demands = tuple(groups[index].at[name] for index in served)
    site = msgspec.structs.replace(places[0].site, demands=demands)
    for number, pilots in pilots_by_demand(site, range(len(served))).items():
        for pilot in pilots:
            place = home_of(pilot, places)
            planned = place.free.starts.get(pilot.queued_as, site.now)
            wait = max(0.0, planned - site.now) + site.delay(pilot.request.p, site.now)
            slots = slots_left(pilot, demands[number], place.shape(demands[number]).unit)
            yield served[number], pilot.id, member_of(pilot, demands[number], slots, wait, site.now)
