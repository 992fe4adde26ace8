"""Which waiting tasks the pilots in the system are expected to take, and which pilots nobody needs."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.shape import TINY, rounds_within, task_slots
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteView
from adaptor.model import PilotState


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What the pilots in the system mean for the demands of their site."""

    uncovered: list[int]
    """By demand: waiting tasks that no pilot is expected to take."""
    needless: list[int]
    """Queued pilots whose every slot would find no task that it could take."""


def coverage(view: SiteView) -> Coverage:
    """Hand the tasks of the demands to the pilots in the system.

    Each task slot of a queued pilot is expected to take `⌊(tr − pad) / runtime⌋` tasks, at least one,
    so that a pilot keeps its place when the estimate has grown; but none if it is too short for the
    shortest waiting task, since no worker would start one in it. An idle slot of a running pilot takes
    `⌊time left / runtime⌋`. One that runs a task takes `⌈time left / runtime⌉ − 1`: what is left of the
    current round is not known, and a request too many costs more than one that is made a little later.
    A pilot that can serve several demands serves those with the largest uncovered share first.

    A queued pilot is needless when the idle slots of running pilots and the slots of the queued ones
    before it (in order of issue) can take every waiting task at once. That does not depend on how many
    rounds are expected, so a small change of an estimate withdraws nothing.
    """
    return Coverage(
        uncovered=_Handout(view).run(math.inf).waiting,
        needless=_Handout(view).run(1).untouched,
    )


class _Handout:
    """One pass over the pilots, running ones first, then the others in order of issue."""

    def __init__(self, view: SiteView) -> None:
        self._view = view
        self._held = [demand.running for demand in view.demands]
        self.waiting = [demand.waiting for demand in view.demands]
        self.untouched: list[int] = []

    def run(self, most_rounds: float) -> _Handout:
        """Give each slot at most so many tasks."""
        for pilot in sorted(self._view.pilots, key=lambda each: (_waits(each), each.id)):
            if pilot.state is PilotState.RUNNING:
                self._run(pilot, most_rounds)
            elif pilot.state.in_system and not self._queue(pilot, most_rounds):
                self.untouched.append(pilot.id)
        return self

    def _run(self, pilot: PilotView, most_rounds: float) -> None:
        seconds = max(0.0, _time_left(pilot, self._view.now))
        left = [seconds / demand.runtime for demand in self._view.demands]
        idle = self._fill(pilot, 1.0, self._held, [1.0] * len(left))
        self._fill(pilot, idle, self.waiting, [min(most_rounds, math.floor(each)) for each in left])
        later = [max(0, min(most_rounds, math.ceil(each)) - 1) for each in left]
        self._fill(pilot, 1.0 - idle, self.waiting, later)

    def _queue(self, pilot: PilotView, most_rounds: float) -> bool:
        """Whether some task needs the pilot."""
        rounds = [
            min(most_rounds, max(1, self._rounds(demand, pilot.request.tr))) if holds(pilot, demand) else 0
            for demand in self._view.demands
        ]
        return self._fill(pilot, 1.0, self.waiting, rounds) < 1.0

    def _rounds(self, demand: Demand, seconds: float) -> int:
        return rounds_within(seconds, demand.runtime, self._view.rules.pad)

    def _fill(self, pilot: PilotView, share: float, open_tasks: list[int], rounds: list[float]) -> float:
        """Hand open tasks to what is left of a pilot; the share of it that is left then."""
        demands = self._view.demands
        for index in sorted(range(len(demands)), key=self._uncovered_share, reverse=True):
            capacity = _slots(pilot, demands[index], self._view.rules) * rounds[index]
            taken = math.floor(min(open_tasks[index], share * capacity + TINY))
            if taken:
                open_tasks[index] -= taken
                share -= taken / capacity
        return share

    def _uncovered_share(self, index: int) -> float:
        return self.waiting[index] / max(1, self._view.demands[index].waiting)


def holds(pilot: PilotView, demand: Demand) -> bool:
    """Whether the pilot is long enough for the shortest waiting task."""
    return pilot.request.tr >= demand.shortest


def _waits(pilot: PilotView) -> bool:
    return pilot.state is not PilotState.RUNNING


def _slots(pilot: PilotView, demand: Demand, rules: SiteRules) -> int:
    """Tasks of the demand that run in the pilot at the same time, on the workers that are still there."""
    there = pilot.processors if pilot.state is PilotState.RUNNING else None
    processors = pilot.request.p if there is None else there
    return task_slots(processors, demand.processors_per_task, rules.granularity)


def _time_left(pilot: PilotView, now: float) -> float:
    if pilot.ends is not None:
        return pilot.ends - now
    return (now if pilot.started is None else pilot.started) + pilot.request.tr - now
