"""Simulated productions, and the controllers that take their processors and give them back."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.budget.provisioning.steering import Aim, Progress
from adaptor.budget.provisioning.task_shares import DAEMON, INTERVAL, Caution, split_tasks
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.budget.provisioning.ways import CONFIDENCE
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.normal import excess
from adaptor_experiments.ricciardi import equations as paper
from adaptor_experiments.ricciardi.design import (
    Flavour,
    Resource,
    Runtimes,
    Target,
)


class Running(msgspec.Struct, frozen=True):
    site: int
    started: float


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a controller may know."""

    now: float
    waiting: int
    running: tuple[Running, ...]
    spent: float
    """Credits, for the tasks that run up to now."""


class Controller(Protocol):
    """Decides how many processors to use."""

    def finished(self, site: int, runtime: float) -> None:
        """A task has ended."""

    def decide(self, state: State) -> tuple[list[int], float]:
        """Processors by resource, and the instant of the next decision."""


class Outcome(msgspec.Struct, frozen=True):
    seconds: float
    credits: float
    steps: int


class Production:
    """Eager: a wanted processor without a task takes the next. Tasks are never stopped (§4)."""

    def __init__(self, resources: Sequence[Resource], runtimes: Runtimes, tasks: int) -> None:
        self._resources, self._runtimes = resources, runtimes
        self._waiting = tasks
        self._now = 0.0
        self._paid = 0.0
        self._busy = [0] * len(resources)
        self._ends: list[tuple[float, int, int, float]] = []
        """End, serial number, site and start of each running task."""
        self._serial = 0

    def run(self, controller: Controller) -> Outcome:
        """Until the last task has ended."""
        steps, due = 0, 0.0
        wanted = [0] * len(self._resources)
        while self._waiting or self._ends:
            if self._waiting and due <= self._now:
                wanted, due = controller.decide(self._state())
                steps += 1
            self._start(wanted)
            if self._ends and (not self._waiting or self._ends[0][0] <= due):
                end, _, site, start = heapq.heappop(self._ends)
                self._now = end
                self._busy[site] -= 1
                self._paid += (end - start) * self._resources[site].cost
                controller.finished(site, end - start)
            else:
                self._now = due
        return Outcome(self._now, self._paid, steps)

    def _start(self, wanted: Sequence[int]) -> None:
        for site, most in enumerate(wanted):
            while self._waiting and self._busy[site] < most:
                runtime = self._runtimes.next(site, self._now)
                self._serial += 1
                heapq.heappush(self._ends, (self._now + runtime, self._serial, site, self._now))
                self._busy[site] += 1
                self._waiting -= 1

    def _state(self) -> State:
        running = tuple(Running(site, start) for _, _, site, start in self._ends)
        cost = sum((self._now - each.started) * self._resources[each.site].cost for each in running)
        return State(now=self._now, waiting=self._waiting, running=running, spent=self._paid + cost)


LATE = 3  # δt before the end `EvenOddsController` decides more often, so that the last tasks are placed well
SHORT = 0.25  # of Δt


def _remaining(task: TaskTime, elapsed: float) -> float:
    """Seconds that a task which has run for `elapsed` is expected to run on."""
    return excess(task.mean, task.deviation, elapsed)[0]


class PaperController:
    """The paper's: means of the finished tasks, remaining tasks, time and credits (eq. 11 and 12)."""

    def __init__(self, resources: Sequence[Resource], target: Target, delta: float) -> None:
        self._offers = [each.offer for each in resources]
        self._target, self._delta = target, delta
        self._seen = [KnownRuntimes() for _ in self._offers]

    def finished(self, site: int, runtime: float) -> None:
        self._seen[site].add(runtime)

    def decide(self, state: State) -> tuple[list[int], float]:
        offers = [
            msgspec.structs.replace(each, task=each.task.learned(seen, state.now))
            for each, seen in zip(self._offers, self._seen, strict=True)
        ]
        tasks = state.waiting + len(state.running)
        if self._target.goal == "time":
            counts = paper.for_time(tasks, offers, self._target.seconds - state.now)
            counts = counts or [each.processors for each in offers]
        else:
            counts = paper.for_cost(tasks, offers, self._target.credits - state.spent)
            least = min(each.cost_per_task for each in offers)
            counts = counts or [each.processors if each.cost_per_task == least else 0 for each in offers]
        return counts, state.now + self._delta


class DaemonController:
    """`split_tasks` as the daemon asks it, with what is known of the running tasks."""

    caution = DAEMON

    def __init__(self, resources: Sequence[Resource], target: Target, delta: float) -> None:
        self._offers = [each.offer for each in resources]
        self._goal, self._delta, self._target = target.goal, delta, target
        self._seen_at = [KnownRuntimes() for _ in self._offers]

    def finished(self, site: int, runtime: float) -> None:
        self._seen_at[site].add(runtime)

    def decide(self, state: State) -> tuple[list[int], float]:
        offers = [self._seen(site, state) for site in range(len(self._offers))]
        progress = Progress(
            now=state.now,
            waiting=state.waiting,
            spent=state.spent,
            committed=sum(
                offers[each.site].price / HOUR * _remaining(offers[each.site].task, state.now - each.started)
                for each in state.running
            ),
        )
        if self._goal == "time":
            aim = Aim(deadline=self._target.seconds, prefer="cheap")
        else:
            aim = Aim(budget=self._target.credits, prefer="fast")
        found = split_tasks(aim, progress, {each.name: (each,) for each in offers}, self.caution)
        return [found.slots(each.name) for each in offers], state.now + self._step(found.seconds)

    def _seen(self, site: int, state: State) -> SiteOffer:
        starts = [each.started for each in state.running if each.site == site]
        held = (HeldSlots(len(starts)),) if starts else ()
        offer, seen = self._offers[site], self._seen_at[site].running_since(starts)
        task = offer.task.learned(seen, state.now, offer.processors)
        return msgspec.structs.replace(offer, task=task, held=held)

    def _step(self, _left: float) -> float:
        return INTERVAL


class EvenOddsController(DaemonController):
    """The same function with the paper's Δt: a target is met as often as missed, and nothing is wasted."""

    caution = Caution(name="even odds", certainty=CONFIDENCE, reserve=0.0)

    def _step(self, left: float) -> float:
        return self._delta if left > LATE * self._delta else SHORT * self._delta


CONTROLLERS: dict[Flavour, Callable[[Sequence[Resource], Target, float], Controller]] = {
    "paper": PaperController,
    "even odds": EvenOddsController,
    "daemon": DaemonController,
}
