"""A bag and the queue around it as arrays, and what sets of requests are worth there. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from adaptor.crafting.profile import Profile
from adaptor.crafting.rollout import kernel
from adaptor.crafting.rollout.bag import Bag, Home
from adaptor.crafting.rollout.beliefs import Belief, beliefs, mean_age
from adaptor.crafting.rollout.kernel import Floats
from adaptor.crafting.rollout.planning import Plan, left_by, planned
from adaptor.crafting.situation import PilotView
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.units import round_down, round_up

PACE, PACE_ALONE = 0.55, 1.0
"""The speed of requests made later, in parts of that of the same requests made now, since the holes of now
are then taken; alone: where only one request is allowed at a time. Found on SDSC SP2."""
BESIDE = 4
"""Requests that start now and are chosen beside those allowed, where these are several: they are made in the
place of those that would start last, which can still be made when they end. None where a running one is
to be ended: its tasks begin anew only for what may be made in its place. Found on SDSC SP2 and CTC."""
SPARE = 2.0
"""A request that starts now asks for so many times the time that it needs by the forecast."""
SOONER = 0.7
"""The wait of a queued request, in parts of the planned one: jobs end before their limits
(0.53 to 0.80 on five traces of the Parallel Workloads Archive)."""


class Made(msgspec.Struct, frozen=True):
    """A request that is to be made."""

    start: float
    """Seconds from now."""
    length: float
    """Seconds."""
    slots: int
    place: int
    """Of its home among those of the bag."""


class RequestSet(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that serve the bag."""

    withdrawn: tuple[PilotView, ...] = ()
    """Queued ones that it does without."""
    members: Floats
    """As `kernel` has them: first those that are there, then those to be made."""
    made: tuple[Made, ...]
    """By start; in several homes then as they were chosen: the next has the nodes that the first leaves."""
    plans: Sequence[Plan]
    """Of the homes, with what is there but without what is to be made."""
    cost: float
    """The expected completion (see `kernel.cost`)."""


class World:
    """Planned once for a decision."""

    def __init__(self, bag: Bag) -> None:
        self.bag = bag
        self.believed = beliefs(
            bag.demand.times, bag.now, bag.demand.running, bag.times.first, bag.longest_task
        )
        self._rules = [_rules(bag, home, self.believed) for home in bag.homes]
        self._beliefs = _as_rows(self.believed)
        self._plans = [planned(home.queue, home.shape.chunk, home.free) for home in bag.homes]
        self._later = kernel.as_now(self._in_homes(kernel.offers, self._plans), self._beliefs, self._common)

    @property
    def _common(self) -> Floats:
        """The rules that do not depend on where a request goes."""
        return self._rules[0]

    def kept(self) -> RequestSet:
        """All that is there, and the best of what may be made beside it."""
        return self._best((), self._plans)

    def without(self, withdrawn: tuple[PilotView, ...]) -> RequestSet:
        """The best set if these are withdrawn (see `left_by`)."""
        gone = {name_of(pilot) for pilot in withdrawn}
        plans = [left_by(home.queue, gone, home.shape.chunk) for home in self.bag.homes]
        return self._best(withdrawn, plans)

    def as_planned(self, found: RequestSet) -> float:
        """The cost of a set if no holes come but those that are planned."""
        left = self._in_homes(kernel.holes, found.plans)
        return self._cost(found.members, kernel.as_planned(left, self._beliefs, self._common))

    def _in_homes(self, found: Callable[[Floats, Floats, float], Floats], plans: Sequence[Plan]) -> Floats:
        """What there is in the homes where requests may go now."""
        return np.concatenate(
            [
                found(plan.profile, rules, float(self.bag.tasks))
                for home, plan, rules in zip(self.bag.homes, plans, self._rules, strict=True)
                if home.usable
            ]
        )

    def with_these(self, requests: Sequence[CraftedRequest]) -> RequestSet:
        """All that is there, and these requests, which start when it is said, else when they fit."""
        profiles, made = [plan.free() for plan in self._plans], []
        for each in requests:
            place, request, start = self.bag.place_of(each.partition), each.request, each.predicted_start
            if start is None:
                start = profiles[place].earliest_start(request.p, request.tr)
            start = max(self.bag.now, start)
            if math.isinf(start):
                continue
            self._take(profiles, place, start, request.tr, request.p)
            slots = self.bag.homes[place].shape.slots(request.p)
            made.append(Made(start - self.bag.now, float(request.tr), slots, place))
        return self._worth((), self._plans, self._there((), self._plans), made)

    def ends(self, members: Floats) -> list[float]:
        """By belief: seconds until the bag is done."""
        return [
            kernel.completion(
                members, float(self.bag.tasks), self._beliefs[which], self._later[which], self._common
            )
            for which in range(len(self.believed))
        ]

    def request(self, made: Made, ends: Sequence[float]) -> Request:
        """Of so many slots, as long as the bag may need it; one that starts now, for twice as long.

        What starts now loses nothing by its length, and forecasts may fail.
        """
        home = self.bag.homes[made.place]
        rules = home.rules
        longest = min(round_down(made.length + kernel.TINY, rules.time_resolution), rules.limits.max_tr)
        needed = max(map(self._needed, self.believed, ends, [made.start] * len(ends)))
        needed = max(needed, self.bag.demand.shortest + rules.pad)  # of tasks that were cut more is known
        if made.start <= 0:
            needed *= SPARE
        tr = min(longest, round_up(max(1.0, needed) - kernel.TINY, rules.time_resolution))
        return Request(home.shape.processors_for(made.slots), int(tr))

    def _needed(self, belief: Belief, end: float, start: float) -> float:
        """Seconds from its start that a request may be of use; a task that is started is to be finished."""
        spare = 0.0 if belief.alike else belief.longest
        return max(end - start + spare, belief.longest) + self.bag.rules.pad

    def _best(self, withdrawn: tuple[PilotView, ...], plans: Sequence[Plan]) -> RequestSet:
        there = self._there(withdrawn, plans)
        made = self._chosen(there, plans, withdrawn)
        return self._worth(withdrawn, plans, there, self._on_nodes(made, plans))

    def _chosen(self, there: Floats, plans: Sequence[Plan], withdrawn: tuple[PilotView, ...]) -> list[Made]:
        """One by one the request that shortens the completion most."""
        bag = self.bag
        allowed = bag.allowed + len(withdrawn)
        most = kernel.NEVER if bag.demand.most is None else float(bag.demand.most)
        most += sum(pilot.request.p for pilot in withdrawn)
        if len(bag.homes) == 1:
            ended = any(pilot.state is PilotState.RUNNING for pilot in withdrawn)
            beside = 0 if bag.one_at_a_time or ended else BESIDE
            more = self._more(0, plans[0].profile, there, allowed, most, beside)
            made = _made(more, len(there), 0)
            return sorted(made, key=lambda each: (each.length, each.slots))  # the shorter block others least
        left = [
            home.usable * (home.allowed + sum(home is bag.home_of(each) for each in withdrawn))
            for home in bag.homes
        ]
        return self._chosen_among(left, [plan.profile for plan in plans], there, allowed, most)

    def _chosen_among(
        self, left: list[int], profiles: list[Floats], members: Floats, allowed: int, most: float
    ) -> list[Made]:
        """The same over several homes, in each of which so many are left."""
        homes, chosen = self.bag.homes, list[Made]()
        for _ in range(allowed):
            tried = [
                (place, self._more(place, profile, members, 1, most))
                for place, profile in enumerate(profiles)
                if left[place]
            ]
            found = [
                (self._cost(more, self._later), place, more)
                for place, more in tried
                if len(more) > len(members)
            ]
            if not found:
                break
            _, place, more = min(found, key=lambda each: each[:2])
            (best,) = _made(more, len(members), place)
            chosen.append(best)
            members, left[place] = more, left[place] - 1
            processors = float(homes[place].shape.processors_for(best.slots))
            most -= processors
            profiles = [
                self._beside(best, processors, profile) if home.shares_with(homes[place]) else profile
                for home, profile in zip(homes, profiles, strict=True)
            ]
        return chosen

    def _more(
        self, place: int, profile: Floats, members: Floats, allowed: int, most: float, beside: int = 0
    ) -> Floats:
        """The members and up to so many more in this home."""
        tasks = float(self.bag.tasks)
        return kernel.chosen(
            profile, members, allowed, most, tasks, self._beliefs, self._later, self._rules[place], beside
        )

    def _beside(self, made: Made, processors: float, profile: Floats) -> Floats:
        end = made.start + made.length + self.bag.rules.slot_margin
        return kernel.taken(profile, made.start, end, processors)

    def _on_nodes(self, made: Sequence[Made], plans: Sequence[Plan]) -> list[Made]:
        """Requests at the times when they fit: where one node comes free as another one is taken, the sum
        of both is no hole."""
        if all(plan.slots is None for plan in plans):
            return list(made)
        profiles, moved = [plan.free() for plan in plans], []
        for each in made:
            processors = self.bag.homes[each.place].shape.processors_for(each.slots)
            length = each.length + self.bag.rules.slot_margin
            fits = profiles[each.place].earliest_start(processors, length, self.bag.now + each.start)
            if fits < math.inf:
                self._take(profiles, each.place, fits, length, processors)
                moved.append(msgspec.structs.replace(each, start=fits - self.bag.now))
        return moved

    def _take(
        self, profiles: Sequence[Profile], place: int, start: float, length: float, processors: int
    ) -> None:
        """Of its home, and of those that share nodes with it: which nodes it gets is not known."""
        for home, profile in zip(self.bag.homes, profiles, strict=True):
            if home.shares_with(self.bag.homes[place]):
                there = min(processors, profile.minimum(start, start + length))
                if there > 0:
                    profile.take(start, length, there)

    def _worth(
        self, withdrawn: tuple[PilotView, ...], plans: Sequence[Plan], there: Floats, made: Sequence[Made]
    ) -> RequestSet:
        rows = [(each.start, each.length, float(each.slots), 0.0) for each in made]
        members = np.array([*there, *rows], np.float64).reshape(-1, 4)
        return RequestSet(
            withdrawn=withdrawn,
            members=members,
            made=tuple(sorted(made, key=lambda each: each.start)),
            plans=plans,
            cost=self._cost(members, self._later),
        )

    def _cost(self, members: Floats, later: Floats) -> float:
        if not len(members):
            return kernel.NEVER
        return kernel.cost(members, float(self.bag.tasks), self._beliefs, later, self._common)

    def _there(self, withdrawn: tuple[PilotView, ...], plans: Sequence[Plan]) -> Floats:
        gone = {pilot.id for pilot in withdrawn}
        rows = [self._member(pilot, plans) for pilot in self.bag.pilots if pilot.id not in gone]
        return np.array(rows, np.float64).reshape(-1, 4)

    def _member(self, pilot: PilotView, plans: Sequence[Plan]) -> tuple[float, float, float, float]:
        bag = self.bag
        if pilot.state is PilotState.RUNNING:
            processors = pilot.request.p if pilot.processors is None else pilot.processors
            left = (bag.now if pilot.ends is None else pilot.ends) - bag.now
            age = max(1.0, mean_age(bag.demand.times, bag.now))
            return 0.0, left, float(bag.slots(pilot, processors)), age
        start = max(0.0, plans[bag.place_of(pilot.partition)].starts.get(name_of(pilot), 0.0))
        wait = SOONER * start if start < kernel.NEVER else kernel.NEVER
        return wait, float(pilot.request.tr), float(bag.slots(pilot, pilot.request.p)), 0.0


def _made(members: Floats, there: int, place: int) -> list[Made]:
    """The members after those that are there, all of them in one home."""
    return [Made(start, length, int(slots), place) for start, length, slots, _ in members[there:].tolist()]


def name_of(pilot: PilotView) -> str:
    """Of its request in the queue; the scheduler may not show it yet (see `places_of`)."""
    return f"pilot {pilot.id}" if pilot.job is None else pilot.job


def _rules(bag: Bag, home: Home, believed: list[Belief]) -> Floats:
    """In the columns of `kernel`. A request must hold the task that needs least by what is known of it."""
    shape, limits = home.shape, home.rules.limits
    shortest = max(bag.demand.shortest, min(each.longest for each in believed))
    rules = np.zeros(kernel.RULES)
    rules[kernel.WIDEST], rules[kernel.UNIT] = shape.widest, shape.unit.processors
    rules[kernel.TASKS], rules[kernel.MAX_TR] = shape.unit.tasks, limits.max_tr
    rules[kernel.PAD], rules[kernel.MARGIN] = bag.rules.pad, bag.rules.slot_margin
    rules[kernel.RESOLUTION] = bag.rules.time_resolution
    rules[kernel.LEAST] = min(bag.rules.pad + shortest, limits.max_tr)
    rules[kernel.PACE] = PACE_ALONE if bag.one_at_a_time else PACE
    return rules


def _as_rows(believed: list[Belief]) -> Floats:
    weight = sum(each.weight for each in believed)
    return np.array([(each.mean, each.longest, each.weight / weight) for each in believed], np.float64)
