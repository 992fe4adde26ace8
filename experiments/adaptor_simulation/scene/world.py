"""The world of a scene: clusters, workers and the clock, and when each site is to decide.

A `Decider` decides, the simulation itself or the daemon in a test; the world is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

from adaptor.crafting.heuristics import is_narrow
from adaptor.model import TaskState
from adaptor.protocol.messages import Leaving
from adaptor.reports import JobState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart
from adaptor_simulation.scene.site import Change, SimulatedSite
from adaptor_simulation.worker import Behaviour, PilotPlace
from adaptor_simulation.workers import Event, SimulatedWorkers, TaskEnded, WorkerLeft

PAUSE = 1  # seconds between two steps of a site, at least


class Decider(Protocol):
    """Decides for the sites of a world and carries that out."""

    broker: Broker

    def called(self, site: str, pilot: int, now: float) -> None:
        """The first worker of a pilot calls."""

    def attempt_started(self, started: AttemptStart) -> None:
        """A task was leased to a worker."""

    def attempt_ended(self, ended: AttemptEnd) -> None:
        """An attempt is over."""

    def step(self, site: str, now: float) -> Iterable[str]:
        """One step of a site; returns the sites that are to step soon."""


class World:
    def __init__(self, sites: Mapping[str, SimulatedSite], decider: Decider) -> None:
        self.now = 0
        self._sites, self._decider = sites, decider
        settings = {name: site.place.settings for name, site in sites.items()}
        self._workers = SimulatedWorkers(
            decider.broker,
            idle_timeout={name: each.idle_timeout for name, each in settings.items()},
            heartbeat=5.0,
            narrow={
                name
                for name, each in settings.items()
                if is_narrow(each.heuristic, each.rules.limits.in_system)
            },
        )
        self._calls: dict[int, tuple[int, str, Change]] = {}
        """By pilot that has started: when its worker calls, at which site."""
        self._of_pilot: dict[int, str] = {}
        self._next = dict.fromkeys(sites, math.inf)  # when each site is to step
        self._stepped = dict.fromkeys(sites, -PAUSE)
        self._bags: dict[int, Bag] = {}
        self.ended: list[TaskEnded] = []  # the ends of tasks, in their order

    def add_bag(self, bag: Bag, behaviour: Behaviour) -> None:
        """A bag comes now; `behaviour` says what its attempts do."""
        self._bags[bag.id] = bag
        self._workers.add_bag(bag, behaviour, float(self.now))
        self._wake(self._sites)

    def run(self, until: int) -> None:
        """Let time go by until all bags have ended, or until that second."""
        while self.now < until and not all(bag.ended for bag in self._bags.values()):
            self.go_on(until)

    def go_on(self, until: int) -> None:
        """Let the sites decide whose time has come, then go on to the next second with an event."""
        self._step_sites()
        self._advance(max(self.now + 1, int(min(self._next_event(), until))))

    # --- the clock ---------------------------------------------------------------------------------

    def _next_event(self) -> float:
        return math.ceil(
            min(
                *(site.next_event() for site in self._sites.values()),
                *self._next.values(),
                self._workers.next_event(),
                min((at for at, _, _ in self._calls.values()), default=math.inf),
            )
        )

    def _advance(self, now: int) -> None:
        self.now = now
        for name, site in self._sites.items():
            for change in site.advance(now):
                self._pilot_changed(name, change)
        for pilot in [pilot for pilot, (at, _, _) in self._calls.items() if at <= now]:
            self._call(pilot)
        self._take_in(self._workers.advance(float(now)))

    def _step_sites(self) -> None:
        """Let the sites decide whose time has come, in their order, each once in a second."""
        for name, site in self._sites.items():
            if self._next[name] > self.now:
                continue
            self._stepped[name] = self.now
            self._next[name] = self.now + site.place.settings.poll
            self._wake(self._decider.step(name, float(self.now)))
            for other, changed in self._sites.items():
                for change in changed.advance(self.now):
                    self._pilot_changed(other, change)
            self._take_in(self._workers.advance(float(self.now)))

    def _wake(self, sites: Iterable[str]) -> None:
        for name in sites:
            self._next[name] = min(self._next[name], max(self.now, self._stepped[name] + PAUSE))

    # --- pilots and workers ------------------------------------------------------------------------

    def _pilot_changed(self, site: str, change: Change) -> None:
        self._of_pilot[change.pilot] = site
        if change.end is None:
            self._calls[change.pilot] = change.at + self._sites[site].place.startup, site, change
            return
        self._calls.pop(change.pilot, None)
        if change.end in (JobState.PREEMPTED, JobState.CANCELLED):
            self._workers.end_pilot(change.pilot, float(self.now))

    def _call(self, pilot: int) -> None:
        at, site, change = self._calls.pop(pilot)
        self._decider.called(site, pilot, float(at))
        self._workers.start(
            PilotPlace(
                pilot=pilot,
                site=site,
                processors=change.request.p,
                deadline=float(change.at + change.request.tr),
                node=change.node or f"{site}-{pilot}",
            ),
            float(self.now),
        )
        self._wake([site])

    def _take_in(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case AttemptStart():
                    self._decider.attempt_started(event)
                case AttemptEnd():
                    self._decider.attempt_ended(event)
                case TaskEnded():
                    self.ended.append(event)
                    if event.state is TaskState.DONE and self._bags[event.bag].ended:
                        self._wake(self._sites)
                case WorkerLeft():
                    site = self._of_pilot[event.pilot]
                    if event.why is not Leaving.SIGNAL:
                        self._sites[site].leave(event.pilot)
                    self._wake([site])
