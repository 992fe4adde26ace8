"""Which waiting tasks the pilots in the system cover, and which queued pilots are needless."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.shape import TINY, rounds_within, task_slots
from adaptor.crafting.situation import Demand, PilotView, PlanningView, SiteRules, TaskGroup
from adaptor.model import PilotState


class PilotCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How the pilots in the system cover the waiting tasks."""

    uncovered: list[int]
    """By demand (or group): waiting tasks that no pilot covers."""
    needless: list[int]
    """Ids of queued pilots that would find no task for any of their slots."""


def coverage(view: PlanningView) -> PilotCoverage:
    """Assign the waiting tasks of a single site to its pilots (see `joint_coverage`)."""
    return joint_coverage({"": view}, [TaskGroup(demand.waiting, {"": demand}) for demand in view.demands])


def joint_coverage(views: Mapping[str, PlanningView], groups: Sequence[TaskGroup]) -> PilotCoverage:
    """Assign the waiting tasks to the pilots of the sites at which they may run.

    A task slot of a queued pilot covers `⌊(tr − pad) / runtime⌋` tasks, and at least one, so that a
    pilot keeps its place when the estimate grows. It covers none if the pilot is too short for the
    shortest waiting task, since no worker would start a task there. An idle slot of a running pilot
    covers `⌊time left / runtime⌋`, a busy slot `⌈time left / runtime⌉ − 1`: the rest of the current
    round is unknown, and one request too many costs more than one request a little later. A pilot that
    can serve several groups serves those with the largest uncovered share first.

    A queued pilot is needless if the idle slots of running pilots and the slots of earlier queued
    pilots (in order of issue) can hold every waiting task at once. That does not depend on the number
    of rounds, so a small change of an estimate withdraws no pilot.
    """
    return PilotCoverage(
        uncovered=_Assignment(views, groups).run(math.inf).waiting,
        needless=_Assignment(views, groups).run(1).untouched,
    )


class _Assignment:
    """One pass over the pilots, running ones first, then the others in order of issue."""

    def __init__(self, views: Mapping[str, PlanningView], groups: Sequence[TaskGroup]) -> None:
        self._pilots = [(name, view, pilot) for name, view in views.items() for pilot in view.pilots]
        self._groups = groups
        self._demands = {name: [group.at.get(name) for group in groups] for name in views}
        self._held = {
            name: [demand.running if demand else 0 for demand in demands]
            for name, demands in self._demands.items()
        }
        self.waiting = [group.waiting for group in groups]
        self.untouched: list[int] = []

    def run(self, most_rounds: float) -> _Assignment:
        """Assign at most `most_rounds` tasks to each slot."""
        for name, view, pilot in sorted(self._pilots, key=lambda each: (_waits(each[2]), each[2].id)):
            if pilot.state is PilotState.RUNNING:
                self._run(name, view, pilot, most_rounds)
            elif pilot.state.in_system and not self._queue(name, view.rules, pilot, most_rounds):
                self.untouched.append(pilot.id)
        return self

    def _run(self, site: str, view: PlanningView, pilot: PilotView, most_rounds: float) -> None:
        seconds = max(0.0, _time_left(pilot, view.now))
        slots = self._slots(site, view.rules, pilot)
        left = [seconds / demand.runtime if demand else 0.0 for demand in self._demands[site]]
        idle = self._fill(1.0, self._held[site], slots)
        soon = [min(most_rounds, math.floor(each)) for each in left]
        self._fill(idle, self.waiting, _times(slots, soon))
        later = [max(0, min(most_rounds, math.ceil(each)) - 1) for each in left]
        self._fill(1.0 - idle, self.waiting, _times(slots, later))

    def _queue(self, site: str, rules: SiteRules, pilot: PilotView, most_rounds: float) -> bool:
        """Assign tasks to a queued pilot; True if it got any."""
        rounds = [
            min(most_rounds, max(1, rounds_within(pilot.request.tr, demand.runtime, rules.pad)))
            if demand and holds(pilot, demand)
            else 0
            for demand in self._demands[site]
        ]
        return self._fill(1.0, self.waiting, _times(self._slots(site, rules, pilot), rounds)) < 1.0

    def _slots(self, site: str, rules: SiteRules, pilot: PilotView) -> list[float]:
        """By group: tasks that run in the pilot at the same time, on the workers that are still connected."""
        there = pilot.processors if pilot.state is PilotState.RUNNING else None
        processors = pilot.request.p if there is None else there
        return [
            task_slots(processors, demand.processors_per_task, rules.granularity)
            if demand and demand.bag == pilot.bag
            else 0
            for demand in self._demands[site]
        ]

    def _fill(self, share: float, open_tasks: list[int], capacities: list[float]) -> float:
        """Assign open tasks to the free share of a pilot; returns the share that stays free.

        `capacities`: by group, the tasks that the whole pilot could hold.
        """
        for index in sorted(range(len(capacities)), key=self._uncovered_share, reverse=True):
            taken = math.floor(min(open_tasks[index], share * capacities[index] + TINY))
            if taken:
                open_tasks[index] -= taken
                share -= taken / capacities[index]
        return share

    def _uncovered_share(self, index: int) -> float:
        return self.waiting[index] / max(1, self._groups[index].waiting)


def holds(pilot: PilotView, demand: Demand) -> bool:
    """True if the pilot serves these tasks and is long enough for the shortest waiting one."""
    return pilot.bag == demand.bag and pilot.request.tr >= demand.shortest


def _times(slots: list[float], rounds: Sequence[float]) -> list[float]:
    return [each * count for each, count in zip(slots, rounds, strict=True)]


def _waits(pilot: PilotView) -> bool:
    return pilot.state is not PilotState.RUNNING


def _time_left(pilot: PilotView, now: float) -> float:
    if pilot.ends is not None:
        return pilot.ends - now
    return (now if pilot.started is None else pilot.started) + pilot.request.tr - now
