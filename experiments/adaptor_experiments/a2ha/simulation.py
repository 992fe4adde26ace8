"""A bag on hosts that the estimator buys: a cloud as A²HA assumes it, hosts come when asked for."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from adaptor.budget.provisioning.a2ha import Situation
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.pacing import CORRECTION_PERIOD, SPARE_UNITS
from adaptor.budget.provisioning.presets import Preset
from adaptor.runtimes.learner import RuntimeLearner
from adaptor_experiments.a2ha.paper_presets import Buyer, DaemonBuyer, PublishedBuyer, goes_on

Bought = Literal["as published", "daemon"]
"""Way to ask a preset: step by step as the papers print it, or as the daemon asks it."""
_FACTOR = 2  # the default of `growth_factor`


class PilotRules:
    def __init__(self) -> None:
        self.learner = RuntimeLearner(initial=0.0, factor=_FACTOR, longest=math.inf)

    def needed(self, queue: Sequence[int]) -> float:
        """Seconds that the tasks which wait are known to need at least; 0: nothing is known."""
        if not self.learner.knows:
            return 0.0
        if len(queue) > len(self.learner.cuts):
            return self.learner.estimate
        return min(map(self.learner.estimate_of, queue), default=0.0)

    def place(self, queue: Sequence[int], time_left: float) -> int | None:
        """Place of the next task, from the end of the queue, that a host starts; None: it has time for
        none."""
        odd = len(self.learner.cuts) + 1
        for place in range(-1, -min(len(queue), odd) - 1, -1):
            if not self.learner.knows or self.learner.estimate_of(queue[place]) <= time_left:
                return place
        return None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a run of a bag; times in seconds."""

    hosts: int
    """Bought in the whole."""
    units: int
    """Charged."""
    wall: float
    """From the first purchase to the last result."""
    work: float
    """Serial time of the finished tasks."""
    cut: int
    """Tasks interrupted at the end of a unit."""
    wasted: float
    """Seconds of the interrupted tasks."""
    continued: int
    """Hosts that went on into another unit with a running task."""


class _Host:
    __slots__ = ("ends", "last_end", "ready", "started", "task", "turn")

    def __init__(self, ready: float, ends: float, last_end: float) -> None:
        self.ready = ready
        self.ends = ends  # of the paid time
        self.last_end = last_end  # it cannot go on beyond that, where the pilot's request ends
        self.task: int | None = None
        self.started = 0.0
        self.turn = 0
        """Counts its tasks, so that the end of one that was cut is not taken for that of the next."""


_FINISHED, _READY, _END, _PERIODIC = range(4)
"""Kinds of event, in the order in which they count at the same instant."""


class CloudRun:
    """One bag; `runtimes` (seconds) are in the order in which tasks are taken, which shall be random."""

    def __init__(
        self,
        runtimes: Sequence[float],
        terms: HostTerms,
        preset: Preset,
        *,
        initial: int | None = None,
        bought: Bought = "as published",
    ) -> None:
        self._runtimes, self._terms = runtimes, terms
        self._preset = preset
        self._pilots = PilotRules() if bought == "daemon" else None
        self.estimator: Buyer = (DaemonBuyer if self._pilots else PublishedBuyer)(
            len(runtimes), terms, preset
        )
        self._events: list[tuple[float, int, int, _Host | None, int]] = []
        self._count = itertools.count()
        self._queue = list(range(len(runtimes) - 1, -1, -1))
        self._idle: list[_Host] = []
        self._groups: Counter[tuple[float, float]] = Counter()
        self._bought = self._units = self._cut = self._continued = 0
        self._wasted = 0.0
        self.history: list[int] = []  # hosts bought so far, after each task that finished
        self.now = 0.0
        # A hint is corrected by the ratio; this is the one that leaves `initial` hosts.
        hint = None if initial is None else round(initial / preset.creation_ratio)
        self._buy(self.estimator.first(hint))
        self._period = CORRECTION_PERIOD * terms.unit
        self._at(self._period, _PERIODIC)

    def finish(self) -> Run:
        while self.estimator.runtimes.finished < len(self._runtimes):
            self.advance()
        return Run(
            hosts=self._bought,
            units=self._units,
            wall=self.now,
            work=math.fsum(self._runtimes),
            cut=self._cut,
            wasted=self._wasted,
            continued=self._continued,
        )

    def advance(self) -> None:
        """To the next event."""
        self.now, kind, _, host, turn = heapq.heappop(self._events)
        if host is None:
            self._step(periodic=True)
            self._at(self.now + self._period, _PERIODIC)
        elif kind == _READY:
            self._next_task(host)
        elif kind == _END:
            self._unit_ends(host)
        elif host.turn == turn:
            assert host.task is not None
            ran = self.now - host.started
            self.estimator.runtimes.finish(host.started, ran)
            if self._pilots:
                self._pilots.learner.finished(ran, host.task)
            host.task = None
            self._step()
            self.history.append(self._bought)
            self._next_task(host)

    def hosts(self) -> list[Hosts]:
        """Hosts that are paid now, in groups."""
        return [Hosts(count, ready, ends) for (ready, ends), count in self._groups.items()]

    def _step(self, *, periodic: bool = False) -> None:
        if self._pilots:
            assert isinstance(self.estimator, DaemonBuyer)
            self.estimator.needed = self._pilots.needed(self._queue)
        self._buy(self.estimator.step(self.now, self.hosts(), periodic=periodic))

    def _next_task(self, host: _Host) -> None:
        place: int | None = None
        if self._queue and self.now < host.ends:
            place = self._pilots.place(self._queue, host.last_end - self.now) if self._pilots else -1
        if place is None:
            self._idle.append(host)
            return
        host.task, host.started = self._queue.pop(place), self.now
        host.turn += 1
        self.estimator.runtimes.start(self.now)
        self._at(self.now + self._runtimes[host.task], _FINISHED, host)

    def _unit_ends(self, host: _Host) -> None:
        group = host.ready, host.ends
        self._groups[group] -= 1
        if not self._groups[group]:
            del self._groups[group]
        if host.task is None:
            if host in self._idle:
                self._idle.remove(host)
            return
        ran = self.now - host.started
        situation = Situation(
            now=self.now,
            tasks=len(self._runtimes),
            runtimes=self.estimator.runtimes,
            hosts=self.hosts(),
            terms=self._terms,
        )
        if host.ends < host.last_end and goes_on(situation, self._preset, ran):
            self._continued += 1
            self._pay(host)
        else:
            self._interrupt(host, ran)

    def _interrupt(self, host: _Host, ran: float) -> None:
        assert host.task is not None
        self._cut += 1
        self._wasted += ran
        if self._pilots:
            self._pilots.learner.cut(host.task, ran)
        self.estimator.runtimes.stop(host.started)
        host.turn += 1
        self._queue.append(host.task)
        free = next((each for each in self._idle if each.ends > self.now), None)
        if free:
            self._idle.remove(free)
            self._next_task(free)

    def _buy(self, advice: Advice) -> None:
        units = advice.units + SPARE_UNITS if self._pilots else math.inf
        self._bought += advice.hosts
        for _ in range(advice.hosts):
            host = _Host(self.now + self._terms.startup, self.now, self.now + units * self._terms.unit)
            self._at(host.ready, _READY, host)
            self._pay(host)

    def _pay(self, host: _Host) -> None:
        host.ends += self._terms.unit
        self._units += 1
        self._groups[host.ready, host.ends] += 1
        self._at(host.ends, _END, host)

    def _at(self, time: float, kind: int, host: _Host | None = None) -> None:
        entry = (time, kind, next(self._count), host, host.turn if host else 0)
        heapq.heappush(self._events, entry)
