"""Which requests complete a bag first, beside those that are there or instead of some of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.completion.bag import Bag, Home, first_runtime
from adaptor.crafting.completion.beliefs import Belief, beliefs, mean_age
from adaptor.crafting.completion.progress import Member, Progress
from adaptor.crafting.completion.sets import Outcomes, RequestSet, places_for
from adaptor.crafting.profile import Profile
from adaptor.crafting.shape import TINY
from adaptor.crafting.situation import PilotView
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.units import round_up

PACE, PACE_ALONE = 0.55, 1.0
"""The speed of requests made later, in parts of that of the same requests made now, since the holes of now
are then taken; alone: where only one request is allowed at a time. Found on SDSC SP2."""
SPARE = 2.0
"""A request that starts now asks for so many times the time that it needs by the forecast: it loses nothing
by its length, and forecasts may fail."""
SOONER = 0.7
"""The wait of a queued request, in parts of the planned one: jobs end before their limits
(0.53 to 0.80 on five traces of the Parallel Workloads Archive)."""
BETTER = places_for(0.998)
"""A request must shorten the completion by this factor to be made."""
AT_ONCE = 12
"""Requests chosen in one decision at most; the next one goes on."""


class Made(msgspec.Struct, frozen=True):
    """A request that is to be made."""

    home: int
    """The number of its home."""
    member: Member
    processors: int


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that serve the bag."""

    withdrawn: tuple[PilotView, ...] = ()
    """Those that it does without."""
    set: RequestSet
    made: list[Made]
    """Those to be made, by start."""


class Search:
    """The queues, planned once for a decision."""

    def __init__(self, bag: Bag) -> None:
        self.bag = bag
        first = first_runtime(bag.max_tr)
        self.believed = beliefs(bag.demand.times, bag.now, bag.demand.running, first, bag.longest_task)
        pace = PACE_ALONE if bag.one_at_a_time else PACE
        progress = [Progress(belief, bag.tasks, bag.rules.pad, pace) for belief in self.believed]
        self._outcomes = Outcomes(progress, bag.tasks)
        self._free = [home.place.free or Availability(home.place.queue) for home in bag.homes]
        self._profiles = [
            free.profile(home.shape.chunk) for home, free in zip(bag.homes, self._free, strict=True)
        ]
        shortest = max(bag.demand.shortest, min(belief.longest for belief in self.believed))
        self._least = [
            min(bag.rules.pad + shortest, home.place.rules.limits.max_tr) for home in bag.homes
        ]
        offers = [
            offer
            for number, profile in enumerate(self._profiles)
            for offer, _ in self._offers(number, profile, math.inf)
        ]
        for each in progress:
            each.foresee(offers)

    def kept(self) -> Choice:
        """All that is there, and the best of what may be made beside it."""
        return self._best((), self._profiles)

    def without(self, withdrawn: tuple[PilotView, ...]) -> Choice:
        """The best if these are withdrawn; the other jobs are taken to keep their planned starts."""
        return self._best(withdrawn, self._left_by(withdrawn))

    def with_these(self, requests: Sequence[CraftedRequest]) -> Choice:
        """All that is there, and these requests, which start when it is said, else when they fit."""
        profiles, made = [profile.copy() for profile in self._profiles], list[Made]()
        for crafted in requests:
            number, request = self.bag.home_of(crafted.partition), crafted.request
            start = crafted.predicted_start
            if start is None:
                start = profiles[number].earliest_start(request.p, request.tr)
            if math.isinf(start):
                continue
            start = max(self.bag.now, start)
            self._take(profiles, number, start, request.tr, request.p)
            member = Member(start - self.bag.now, float(request.tr), self._slots(number, request.p))
            made.append(Made(number, member, request.p))
        members = [*self._there(()), *(each.member for each in made)]
        return Choice(set=RequestSet(self._outcomes, members), made=made)

    def request(self, made: Made, ends: Sequence[float]) -> Request:
        """As long as the bag may need it by the belief that needs most."""
        rules, start = self.bag.homes[made.home].place.rules, made.member.start
        needed = max(map(self._needed, self.believed, ends, [start] * len(ends)))
        needed = max(needed, self.bag.demand.shortest + rules.pad)  # of tasks that were cut more is known
        if start <= 0:
            needed *= SPARE
        needed = max(1.0, needed, rules.least_tr)
        tr = min(made.member.length, round_up(needed - TINY, rules.time_resolution))
        return Request(made.processors, int(tr))

    def _needed(self, belief: Belief, end: float, start: float) -> float:
        """Seconds from its start that a request may be of use; a task that is started is to be finished."""
        spare = 0.0 if belief.alike else belief.longest
        return max(end - start + spare, belief.longest) + self.bag.rules.pad

    def _best(self, withdrawn: tuple[PilotView, ...], profiles: Sequence[Profile]) -> Choice:
        """One by one the request that shortens the completion most."""
        bag = self.bag
        found = RequestSet(self._outcomes, self._there(withdrawn))
        left = [
            home.place.usable
            * (home.place.allowed + sum(home is bag.homes[bag.home_of(each.partition)] for each in withdrawn))
            for home in bag.homes
        ]
        most = math.inf if bag.demand.most is None else bag.demand.most
        most += sum(pilot.request.p for pilot in withdrawn)
        made: list[Made] = []
        for _ in range(min(AT_ONCE, bag.allowed + len(withdrawn))):
            best, least = None, found.worth - BETTER
            for number, profile in enumerate(profiles):
                if not left[number]:
                    continue
                for member, processors in self._offers(number, profile, most):
                    worth = found.worth_with(member, least)
                    if worth < least:
                        best, least = Made(number, member, processors), worth
            if best is None:
                break
            profiles = [profile.copy() for profile in profiles] if not made else profiles
            best = self._placed(best, profiles)
            left[best.home] -= 1
            if math.isinf(best.member.start):
                continue
            found = found.joined(best.member)
            made.append(best)
            most -= best.processors
        made.sort(key=lambda each: (each.member.start, each.member.length, each.member.slots))
        return Choice(withdrawn=withdrawn, set=found, made=made)

    def _offers(self, number: int, profile: Profile, most: float) -> list[tuple[Member, int]]:
        """The requests that fit a profile, each the widest and longest of its hole, with their processors.

        Those that another one beats are left out: it starts no later, lasts as long and has as many slots.
        """
        home, bag = self.bag.homes[number], self.bag
        shape, least = home.shape, self._least[number]
        widest = min(shape.widest, shape.processors_for(1 if bag.demand.alone else bag.tasks), most)
        found: list[tuple[Member, int]] = []
        for slot in profile.free_slots():
            processors = shape.fit(int(min(slot.processors, widest)))
            length = shape.longest_tr(slot.duration)
            if not processors or length < least or not home.place.usable:
                continue
            slots = self._slots(number, processors)
            if any(other.length >= length and other.slots >= slots for other, _ in found):
                continue
            found.append((Member(max(0.0, slot.start - bag.now), float(length), slots), processors))
        return found

    def _slots(self, number: int, processors: int) -> int:
        slots = self.bag.homes[number].shape.slots(processors)
        return min(1, slots) if self.bag.demand.alone else slots

    def _placed(self, made: Made, profiles: Sequence[Profile]) -> Made:
        """The request at the time when it fits: where one node comes free as another one is taken, the sum of
        both is no hole. Takes its processors."""
        start, length, *_ = made.member
        length += self.bag.rules.slot_margin
        fits = profiles[made.home].earliest_start(made.processors, length, self.bag.now + start)
        if fits < math.inf:
            self._take(profiles, made.home, fits, length, made.processors)
        return msgspec.structs.replace(made, member=made.member._replace(start=fits - self.bag.now))

    def _take(
        self, profiles: Sequence[Profile], number: int, start: float, length: float, processors: int
    ) -> None:
        """Of its home, and of those that share nodes with it: which nodes it gets is not known."""
        for home, profile in zip(self.bag.homes, profiles, strict=True):
            if home.shares_with(self.bag.homes[number]):
                there = min(processors, profile.minimum(start, start + length))
                if there > 0:
                    profile.take(start, length, there)

    def _left_by(self, withdrawn: tuple[PilotView, ...]) -> list[Profile]:
        """What is free without these requests."""
        gone = {job_of(pilot) for pilot in withdrawn}
        left = []
        for home, free, profile in zip(self.bag.homes, self._free, self._profiles, strict=True):
            if home.place.queue.nodes:
                left.append(free.without(gone).profile(home.shape.chunk))
                continue
            profile = profile.copy()
            for pilot in withdrawn:
                self._give(profile, free, pilot)
            left.append(profile)
        return left

    def _give(self, profile: Profile, free: Availability, pilot: PilotView) -> None:
        now = self.bag.now
        if pilot.state is PilotState.RUNNING:
            ends = now if pilot.ends is None else pilot.ends
            profile.give(now, max(0.0, ends - now), pilot.request.p)
            return
        start = free.starts.get(job_of(pilot), math.inf)
        if start < math.inf:
            profile.give(start, pilot.request.tr, pilot.request.p)

    def _there(self, withdrawn: tuple[PilotView, ...]) -> list[Member]:
        gone = {pilot.id for pilot in withdrawn}
        return [self._member(pilot) for pilot in self.bag.pilots if pilot.id not in gone]

    def _member(self, pilot: PilotView) -> Member:
        bag = self.bag
        if pilot.state is PilotState.RUNNING:
            left = (bag.now if pilot.ends is None else pilot.ends) - bag.now
            return Member(0.0, max(0.0, left), bag.slots(pilot), max(1.0, mean_age(bag.demand.times, bag.now)))
        start = self._free[bag.home_of(pilot.partition)].starts.get(job_of(pilot), bag.now)
        return Member(SOONER * max(0.0, start - bag.now), float(pilot.request.tr), bag.slots(pilot))


def job_of(pilot: PilotView) -> str:
    """The name of its request in the queue; the scheduler may not show it yet (see `places_of`)."""
    return f"pilot {pilot.id}" if pilot.job is None else pilot.job
