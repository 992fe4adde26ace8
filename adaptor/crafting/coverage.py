"""Waiting tasks that the pilots in the system cover, and queued pilots that are needless."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.crafting.fits import TINY, RequestUnit, rounds_within, tasks_in, unit_of
from adaptor.crafting.situation import Demand, PilotView, SiteState, TaskGroup
from adaptor.model import PilotState


class PilotCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Coverage of the waiting tasks by the pilots in the system."""

    uncovered: list[int]
    """Number of waiting tasks that no pilot covers, by demand (or group)."""
    needless: list[int]
    """Ids of queued pilots that would find no task for any of their slots."""


def coverage(view: SiteState) -> PilotCoverage:
    """Assign the waiting tasks of a single site to its pilots (see `joint_coverage`)."""
    groups = [TaskGroup(each.waiting, {"": each}, {"": each.running}) for each in view.demands]
    return joint_coverage({"": view}, groups)


def joint_coverage(views: Mapping[str, SiteState], groups: Sequence[TaskGroup]) -> PilotCoverage:
    """Assign the waiting tasks to the pilots of the sites at which they may run.

    A task slot of a queued pilot covers `⌊(tr − pad) / runtime⌋` tasks, and at least one, so that a
    pilot keeps its place when the estimate grows. It covers none if the pilot is too short for the
    shortest waiting task, since no worker would start a task there. An idle slot of a running pilot
    covers `⌊time left / runtime⌋`, a busy slot `⌈time left / runtime⌉ − 1`: the rest of the current
    round is unknown, and one request too many costs more than one request a little later. A pilot that
    can serve several groups serves those with the largest uncovered share first.

    A queued pilot is needless if the idle slots of running pilots and the slots of earlier queued
    pilots (in order of issue) can hold every waiting task at once, and it covers none in rounds either. The
    former does not depend on the number of rounds, so a small change of an estimate withdraws no pilot.
    """
    scene = _Scene(views, groups)
    in_rounds = _Assignment(scene).run(math.inf)
    needless = in_rounds.untouched
    if needless:  # among tasks of several widths the rounds may leave one that a later pilot was made for
        needless = [id for id in _Assignment(scene).run(1).untouched if id in needless]
    return PilotCoverage(uncovered=in_rounds.waiting, needless=needless)


class _Scene:
    """Data for both passes over the pilots."""

    def __init__(self, views: Mapping[str, SiteState], groups: Sequence[TaskGroup]) -> None:
        self.demands = {name: [group.at.get(name) for group in groups] for name in views}
        self.held = {name: [group.held.get(name, 0) for group in groups] for name in views}
        self.totals = [max(1, group.waiting) for group in groups]
        self.waiting = [group.waiting for group in groups]
        self.pilots: list[tuple[str, SiteState, PilotView, list[float]]] = []
        """Running ones first, then the others in order of issue; with their slots by group."""
        for name, view in views.items():
            units = [
                demand and (demand, unit_of(view.rules, view.queue, demand.task))
                for demand in self.demands[name]
            ]
            self.pilots += [
                (name, view, pilot, [slots_left(pilot, *unit) if unit else 0 for unit in units])
                for pilot in view.requests
                if pilot.state.in_system
            ]
        self.pilots.sort(key=lambda row: (row[2].state is not PilotState.RUNNING, row[2].id))


class _Assignment:
    """One pass over the pilots."""

    def __init__(self, scene: _Scene) -> None:
        self._scene = scene
        self._held = {name: held.copy() for name, held in scene.held.items()}
        self.waiting = scene.waiting.copy()
        self.untouched: list[int] = []

    def run(self, most_rounds: float) -> _Assignment:
        """Assign at most `most_rounds` tasks to each slot."""
        for name, view, pilot, slots in self._scene.pilots:
            if pilot.state is PilotState.RUNNING:
                seconds = max(0.0, time_left(pilot, view.now))
                left = [seconds / demand.runtime if demand else 0.0 for demand in self._scene.demands[name]]
                idle = self._fill(1.0, self._held[name], slots)
                soon = [min(most_rounds, math.floor(each)) for each in left]
                self._fill(idle, self.waiting, _times(slots, soon))
                later = [max(0, min(most_rounds, math.ceil(each)) - 1) for each in left]
                self._fill(1.0 - idle, self.waiting, _times(slots, later))
            else:
                rounds = [
                    min(most_rounds, max(1, rounds_within(pilot.request.tr, demand.runtime, view.rules.pad)))
                    if demand and holds(pilot, demand)
                    else 0
                    for demand in self._scene.demands[name]
                ]
                if self._fill(1.0, self.waiting, _times(slots, rounds)) >= 1.0:
                    self.untouched.append(pilot.id)
        return self

    def _fill(self, share: float, open_tasks: list[int], capacities: list[float]) -> float:
        """Assign open tasks to the free share of a pilot; returns the share that stays free.

        `capacities`: by group, the tasks that the whole pilot could hold.
        """
        order: Sequence[int] = range(len(capacities))
        if len(order) > 1:
            order = sorted(order, key=lambda index: -self.waiting[index] / self._scene.totals[index])
        for index in order:
            taken = math.floor(min(open_tasks[index], share * capacities[index] + TINY))
            if taken:
                open_tasks[index] -= taken
                share -= taken / capacities[index]
        return share


def slots_left(pilot: PilotView, demand: Demand, unit: RequestUnit) -> int:
    """Tasks of a demand that run in a pilot at the same time, on the workers that are still connected."""
    there = pilot.processors if pilot.state is PilotState.RUNNING else None
    return slots_in(pilot, pilot.request.p if there is None else there, demand, unit)


def slots_in(pilot: PilotView, processors: int, demand: Demand, unit: RequestUnit) -> int:
    """Tasks of a demand that run at the same time on a number of processors of a pilot.

    A pilot has the memory and the GPUs of the tasks that it was made for; one with GPUs is kept for tasks
    that need them. Tasks larger than those in one dimension fit into what its workers have been seen to have.
    """
    if pilot.bag != demand.bag:
        return 0
    slots, task = unit.slots(processors), demand.task
    made_for = pilot.shape and pilot.shape[0]
    if made_for is not None and pilot.rooms and task.nodes == 1 and not made_for.covers(task):
        slots = min(slots, sum(room.slots(task) for room in pilot.rooms))
    if made_for is None:
        return 0 if task.gpus or task.nodes > 1 else slots
    tasks = processors // made_for.processors
    if bool(task.gpus) != bool(made_for.gpus) or task.gpu_type not in ("", made_for.gpu_type):
        return 0
    if task.nodes > 1 and made_for != task:
        return 0
    memory = made_for.memory * tasks if made_for.memory else None
    gpus = ((task.gpu_type, made_for.gpus_for(tasks)),)
    return min(slots, tasks_in(task, processors, memory, gpus))


def has_slot(view: SiteState, pilot: PilotView, demand: Demand) -> bool:
    """Whether a task of the demand fits into all that a pilot has asked for."""
    unit = unit_of(view.rules, view.queue, demand.task)
    return slots_in(pilot, pilot.request.p, demand, unit) > 0


def holds(pilot: PilotView, demand: Demand) -> bool:
    """True if the pilot serves these tasks and is long enough for the shortest waiting one."""
    return pilot.bag == demand.bag and pilot.request.tr >= demand.shortest


def _times(slots: list[float], rounds: Sequence[float]) -> list[float]:
    return [slot * count for slot, count in zip(slots, rounds, strict=True)]


def largest_share_first(
    indices: Iterable[int], uncovered: Sequence[int], waiting: Sequence[int]
) -> list[int]:
    """The demands, or groups, in the order in which they get requests: by the share that nothing covers."""
    return sorted(indices, key=lambda index: -uncovered[index] / max(1, waiting[index]))


def time_left(pilot: PilotView, now: float) -> float:
    """Seconds until a running pilot ends at the latest."""
    if pilot.ends is not None:
        return pilot.ends - now
    return (now if pilot.started is None else pilot.started) + pilot.request.tr - now
