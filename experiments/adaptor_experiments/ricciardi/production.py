"""One simulated production: tasks on processors that are taken and given back as the allocation says."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

import msgspec

from adaptor_experiments.ricciardi.design import Resource, Runtimes


class Running(msgspec.Struct, frozen=True):
    site: int
    started: float


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller may know."""

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
                self._end_next(controller)
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

    def _end_next(self, controller: Controller) -> None:
        end, _, site, start = heapq.heappop(self._ends)
        self._now = end
        self._busy[site] -= 1
        self._paid += (end - start) * self._resources[site].cost
        controller.finished(site, end - start)

    def _state(self) -> State:
        running = tuple(Running(site, start) for _, _, site, start in self._ends)
        cost = sum((self._now - each.started) * self._resources[each.site].cost for each in running)
        return State(now=self._now, waiting=self._waiting, running=running, spent=self._paid + cost)
