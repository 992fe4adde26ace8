"""A bag and the queue around it as arrays, and what sets of requests are worth there. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor.crafting.availability import Availability
from adaptor.crafting.coverage import slots_in
from adaptor.crafting.rollout import kernel
from adaptor.crafting.rollout.beliefs import Belief, beliefs, mean_age, scale
from adaptor.crafting.rollout.kernel import Floats
from adaptor.crafting.rollout.planning import Plan, planned, without
from adaptor.crafting.rollout.times import Times, times_for
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, PilotView, SiteRules
from adaptor.model import PilotState, QueueState, Request
from adaptor.units import round_down, round_up

PACE, PACE_ALONE = 0.55, 1.0
"""The speed of requests made later, in parts of that of the same requests made now, since the holes of now
are then taken; alone: where only one request is allowed at a time. Found on SDSC SP2."""
SPARE = 2.0
"""A request that starts now asks for so many times the time that it needs by the forecast."""
SOONER = 0.7
"""The wait of a queued request, in parts of the planned one: jobs end before their limits
(0.53 to 0.80 on five traces of the Parallel Workloads Archive)."""


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one demand, the pilots that serve it, and what may be asked for them."""

    now: float
    demand: Demand
    rules: SiteRules
    shape: RequestShape
    queue: QueueState
    """With all requests, those of these pilots too."""
    pilots: tuple[PilotView, ...]
    allowed: int
    """Requests that may be made now."""
    free: Availability | None = None
    """What the queue leaves free, where it was planned before."""

    @property
    def tasks(self) -> int:
        return self.demand.waiting + self.demand.running

    @property
    def most(self) -> float:
        """Processors of all requests that may be made now."""
        return kernel.NEVER if self.demand.most is None else float(self.demand.most)

    def slots(self, pilot: PilotView, processors: int) -> int:
        """Tasks that run at the same time on so many processors of a pilot."""
        return slots_in(pilot, processors, self.demand, self.shape.unit)

    @property
    def times(self) -> Times:
        return times_for(self.rules.limits.max_tr)


class RequestSet(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that serve the bag."""

    withdrawn: tuple[PilotView, ...] = ()
    """Queued ones that it does without."""
    members: Floats
    """As `kernel` has them: first those that are there, then those to be made."""
    there: int
    cost: float
    """The expected completion (see `kernel.cost`)."""

    @property
    def made(self) -> list[tuple[float, float, int]]:
        """Seconds until the start, seconds, and slots of those to be made, by start."""
        return sorted(
            (start, length, int(slots)) for start, length, slots, _ in self.members[self.there :].tolist()
        )


class World:
    """Planned once for a decision."""

    def __init__(self, bag: Bag) -> None:
        self.bag = bag
        self.believed = beliefs(
            bag.demand.times, bag.now, bag.demand.running, bag.times.first, bag.rules.longest_task
        )
        self._rules = _rules(bag, self.believed)
        self._beliefs = _as_rows(bag, self.believed)
        self._plan = planned(bag.queue, bag.shape.chunk, bag.free)
        found = kernel.offers(self._plan.profile, self._rules, float(bag.tasks))
        self._later = kernel.fresh(found, self._beliefs, self._rules)

    def kept(self) -> RequestSet:
        """All that is there, and the best of what may be made beside it."""
        return self._best((), self._plan)

    def without(self, withdrawn: tuple[PilotView, ...]) -> RequestSet:
        """The best set if these are withdrawn: all that wait are planned anew then, in their order."""
        gone = {name_of(pilot) for pilot in withdrawn}
        return self._best(withdrawn, planned(without(self.bag.queue, gone), self.bag.shape.chunk))

    def with_these(self, requests: Sequence[tuple[Request, float | None]]) -> RequestSet:
        """All that is there, and these requests, which start then (epoch seconds; None: when they fit)."""
        there = self._there((), self._plan)
        profile, rows = self._plan.free(), []
        for request, at in requests:
            start = profile.earliest_start(request.p, request.tr) if at is None else max(self.bag.now, at)
            if math.isinf(start):
                continue
            if profile.minimum(start, start + request.tr) >= request.p:
                profile.take(start, request.tr, request.p)
            slots = self.bag.shape.slots(request.p)
            rows.append((start - self.bag.now, float(request.tr), float(slots), 0.0))
        return self._worth((), np.array([*there, *rows], np.float64).reshape(-1, 4), len(there))

    def ends(self, members: Floats) -> list[float]:
        """By belief: seconds until the bag is done."""
        return [
            kernel.completion(
                members, float(self.bag.tasks), self._beliefs[which], self._later[which], self._rules
            )
            for which in range(len(self.believed))
        ]

    def request(self, start: float, length: float, slots: int, ends: Sequence[float]) -> Request:
        """Of so many slots, as long as the bag may need it; one that starts now, for twice as long.

        What starts now loses nothing by its length, and forecasts may fail.
        """
        rules = self.bag.rules
        longest = min(round_down(length + kernel.TINY, rules.time_resolution), rules.limits.max_tr)
        needed = max(map(self._needed, self.believed, ends, [start] * len(ends)))
        needed = max(needed, self.bag.demand.shortest + rules.pad)  # of tasks that were cut more is known
        if start <= 0:
            needed *= SPARE
        tr = min(longest, round_up(max(1.0, needed) - kernel.TINY, rules.time_resolution))
        return Request(self.bag.shape.processors_for(slots), int(tr))

    def _needed(self, belief: Belief, end: float, start: float) -> float:
        """Seconds from its start that a request may be of use; a task that is started is to be finished."""
        spare = 0.0 if belief.alike else belief.longest
        return max(end - start + spare, belief.longest) + self.bag.rules.pad

    def _best(self, withdrawn: tuple[PilotView, ...], plan: Plan) -> RequestSet:
        there = self._there(withdrawn, plan)
        members = kernel.chosen(
            plan.profile,
            np.array(there, np.float64).reshape(-1, 4),
            self.bag.allowed + len(withdrawn),
            self.bag.most + sum(pilot.request.p for pilot in withdrawn),
            float(self.bag.tasks),
            self._beliefs,
            self._later,
            self._rules,
        )
        if plan.slots is not None:
            members = np.array([*there, *self._on_nodes(members[len(there) :], plan)], np.float64)
        return self._worth(withdrawn, members.reshape(-1, 4), len(there))

    def _on_nodes(self, made: Floats, plan: Plan) -> list[tuple[float, float, float, float]]:
        """Requests at the times when they fit: where one node comes free as another one is taken, the sum
        of both is no hole."""
        profile, margin, rows = plan.free(), self.bag.rules.slot_margin, []
        for start, length, slots, age in made.tolist():
            processors = self.bag.shape.processors_for(int(slots))
            fits = profile.earliest_start(processors, length + margin, self.bag.now + start)
            if fits < math.inf:
                profile.take(fits, length + margin, processors)
                rows.append((fits - self.bag.now, length, slots, age))
        return rows

    def _worth(self, withdrawn: tuple[PilotView, ...], members: Floats, there: int) -> RequestSet:
        cost = kernel.NEVER
        if len(members):
            cost = kernel.cost(members, float(self.bag.tasks), self._beliefs, self._later, self._rules)
        return RequestSet(withdrawn=withdrawn, members=members, there=there, cost=cost)

    def _there(self, withdrawn: tuple[PilotView, ...], plan: Plan) -> list[tuple[float, float, float, float]]:
        gone = {pilot.id for pilot in withdrawn}
        return [self._member(pilot, plan) for pilot in self.bag.pilots if pilot.id not in gone]

    def _member(self, pilot: PilotView, plan: Plan) -> tuple[float, float, float, float]:
        bag = self.bag
        if pilot.state is PilotState.RUNNING:
            processors = pilot.request.p if pilot.processors is None else pilot.processors
            left = (bag.now if pilot.ends is None else pilot.ends) - bag.now
            age = max(1.0, mean_age(bag.demand.times, bag.now))
            return 0.0, left, float(bag.slots(pilot, processors)), age
        start = max(0.0, plan.starts.get(name_of(pilot), 0.0))
        wait = SOONER * start if start < kernel.NEVER else kernel.NEVER
        return wait, float(pilot.request.tr), float(bag.slots(pilot, pilot.request.p)), 0.0


def name_of(pilot: PilotView) -> str:
    """Of its request in the queue; the scheduler may not show it yet (see `places_of`)."""
    return f"pilot {pilot.id}" if pilot.job is None else pilot.job


def _rules(bag: Bag, believed: list[Belief]) -> Floats:
    """In the columns of `kernel`. A request must hold the task that needs least by what is known of it."""
    shape, limits = bag.shape, bag.rules.limits
    shortest = max(bag.demand.shortest, min(each.longest for each in believed))
    rules = np.zeros(kernel.RULES)
    rules[kernel.WIDEST], rules[kernel.UNIT] = shape.widest, shape.unit.processors
    rules[kernel.TASKS], rules[kernel.MAX_TR] = shape.unit.tasks, limits.max_tr
    rules[kernel.PAD], rules[kernel.MARGIN] = bag.rules.pad, bag.rules.slot_margin
    rules[kernel.RESOLUTION] = bag.rules.time_resolution
    rules[kernel.LEAST] = min(bag.rules.pad + shortest, limits.max_tr)
    rules[kernel.PACE] = PACE_ALONE if limits.max_pending_requests == 1 else PACE
    return rules


def _as_rows(bag: Bag, believed: list[Belief]) -> Floats:
    weight = sum(each.weight for each in believed)
    at_once, delay = bag.shape.slots(bag.shape.widest), bag.times.delay
    rows = [
        (each.mean, each.longest, each.weight / weight, scale(each, bag.tasks, at_once, delay))
        for each in believed
    ]
    return np.array(rows, np.float64)
