"""Which requests complete a bag first, beside those that are there or instead of some of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.completion.bag import Bag
from adaptor.crafting.completion.beliefs import Belief, beliefs, first_runtime, mean_age
from adaptor.crafting.completion.progress import FINE, Member, Progress, RequestSet
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
AT_ONCE = 12
"""Requests chosen in one decision at most; the next one goes on."""


def places_for(factor: float) -> float:
    """By how many places in the grid a completion moves that comes sooner by a factor below 1."""
    return -math.log(factor) / math.log(FINE)


BETTER = places_for(0.998)
"""A request must shorten the completion by this factor to be made."""


class Made(NamedTuple):
    """A request that is to be made."""

    place: int
    """The number of its place."""
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
        longest = max(place.rules.longest_task for place in bag.places if place.usable)
        first, demand = first_runtime(bag.max_tr), bag.demand
        self.believed = beliefs(demand.times, bag.now, demand.running, first, longest)
        pad, pace = bag.places[0].rules.pad, PACE_ALONE if bag.one_at_a_time else PACE
        weight = sum(belief.weight for belief in self.believed)
        self._by_belief = [
            Progress(belief, belief.weight / weight, bag.tasks, pad, pace) for belief in self.believed
        ]
        self._free = [place.free or Availability(place.queue) for place in bag.places]
        self._profiles = [
            free.profile(shape.chunk) for free, shape in zip(self._free, bag.shapes, strict=True)
        ]
        self._least = pad + max(demand.shortest, min(belief.longest for belief in self.believed))
        offers = [offer.member for offer in self._offers(self._profiles, math.inf)]
        for progress in self._by_belief:
            progress.foresee(offers)

    def kept(self) -> Choice:
        """All that is there, and the best of what may be made beside it."""
        return self._best((), self._profiles)

    def without(self, withdrawn: tuple[PilotView, ...]) -> Choice:
        """The best if these are withdrawn."""
        return self._best(withdrawn, self._left_by(withdrawn))

    def with_these(self, requests: Sequence[CraftedRequest]) -> Choice:
        """All that is there, and these requests, which start when it is said, else when they fit."""
        profiles, made = [profile.copy() for profile in self._profiles], []
        for crafted in requests:
            number, request = self.bag.place_of(crafted.partition), crafted.request
            start = crafted.predicted_start
            if start is None:
                start = profiles[number].earliest_start(request.p, request.tr)
            if start < math.inf:
                start = max(self.bag.now, start)
                self._take(profiles, number, start, request.tr, request.p)
                member = Member(start - self.bag.now, float(request.tr), self._slots(number, request.p))
                made.append(Made(number, member, request.p))
        members = [*self._there(()), *(each.member for each in made)]
        return Choice(set=RequestSet(self._by_belief, members), made=made)

    def request(self, made: Made, ends: Sequence[float]) -> Request:
        """As long as the bag may need it by the belief that needs most."""
        rules, start = self.bag.places[made.place].rules, made.member.start
        needed = max(_needed(belief, end - start) for belief, end in zip(self.believed, ends, strict=True))
        needed = max(needed, self.bag.demand.shortest) + rules.pad  # of tasks that were cut more is known
        needed = max(1.0, needed * (1.0 if start > 0 else SPARE), rules.least_tr)
        tr = min(made.member.length, round_up(needed - TINY, rules.time_resolution))
        return Request(made.processors, int(tr))

    def _best(self, withdrawn: tuple[PilotView, ...], profiles: Sequence[Profile]) -> Choice:
        """One by one the request that shortens the completion most."""
        bag, made = self.bag, list[Made]()
        found = RequestSet(self._by_belief, self._there(withdrawn))
        gone = [bag.place_of(pilot.partition) for pilot in withdrawn]
        left = [place.allowed + gone.count(number) for number, place in enumerate(bag.places)]
        most = math.inf if bag.demand.most is None else bag.demand.most
        most += sum(pilot.request.p for pilot in withdrawn)
        profiles = [profile.copy() for profile in profiles]
        for _ in range(min(AT_ONCE, bag.allowed + len(withdrawn))):
            offers = [offer for offer in self._offers(profiles, most) if left[offer.place] > 0]
            number = found.best_addition([offer.member for offer in offers], BETTER)
            if number is None:
                break
            best = self._placed(offers[number], profiles)
            left[best.place] -= 1
            if best.member.start < math.inf:
                found, most = found.joined(best.member), most - best.processors
                made.append(best)
        made.sort(key=lambda each: each.member)
        return Choice(withdrawn=withdrawn, set=found, made=made)

    def _offers(self, profiles: Sequence[Profile], most: float) -> list[Made]:
        """The requests that fit, each the widest and longest of its hole.

        Those that another one of the place beats are left out: it starts no later, lasts as long and has as
        many slots.
        """
        bag, found = self.bag, list[Made]()
        for number, profile in enumerate(profiles):
            place, shape = bag.places[number], bag.shapes[number]
            tasks = 1 if bag.demand.alone else bag.tasks
            widest = min(shape.widest, shape.processors_for(tasks), most) if place.usable else 0
            least = min(self._least, place.rules.limits.max_tr)
            unbeaten: list[tuple[float, int]] = []
            for slot in profile.free_slots() if widest else ():
                p, length = shape.fit(int(min(slot.processors, widest))), shape.longest_tr(slot.duration)
                if not p or length < least or any(long >= length and wide >= p for long, wide in unbeaten):
                    continue
                unbeaten = [(long, wide) for long, wide in unbeaten if long > length or wide > p]
                unbeaten.append((length, p))
                start = max(0.0, slot.start - bag.now)
                found.append(Made(number, Member(start, float(length), self._slots(number, p)), p))
        return found

    def _slots(self, place: int, processors: int) -> int:
        slots = self.bag.shapes[place].slots(processors)
        return min(1, slots) if self.bag.demand.alone else slots

    def _placed(self, made: Made, profiles: Sequence[Profile]) -> Made:
        """The request at the time when it fits: where one node comes free as another one is taken, the sum of
        both is no hole. Takes its processors."""
        start, length = self.bag.now + made.member.start, made.member.length
        length += self.bag.places[made.place].rules.slot_margin
        fits = profiles[made.place].earliest_start(made.processors, length, start)
        if fits < math.inf:
            self._take(profiles, made.place, fits, length, made.processors)
        return made._replace(member=made.member._replace(start=fits - self.bag.now))

    def _take(
        self, profiles: Sequence[Profile], number: int, start: float, length: float, processors: int
    ) -> None:
        """Of its place, and of those that share nodes with it: which nodes it gets is not known."""
        for place, profile in zip(self.bag.places, profiles, strict=True):
            if place.shares_with(self.bag.places[number]):
                there = min(processors, profile.minimum(start, start + length))
                if there > 0:
                    profile.take(start, length, there)

    def _left_by(self, withdrawn: tuple[PilotView, ...]) -> list[Profile]:
        """What is free without these requests. The other jobs are taken to keep their planned starts; on
        nodes all that wait are planned anew."""
        now, gone, left = self.bag.now, {job_of(pilot) for pilot in withdrawn}, []
        for number, place in enumerate(self.bag.places):
            if place.queue.nodes:
                left.append(self._free[number].without(gone).profile(self.bag.shapes[number].chunk))
                continue
            profile = self._profiles[number].copy()
            for pilot in withdrawn:
                start, end = now, pilot.ends or now
                if pilot.state is not PilotState.RUNNING:
                    start = self._free[number].starts.get(job_of(pilot), math.inf)
                    end = start + pilot.request.tr
                if start < end:
                    profile.give(start, end - start, pilot.request.p)
            left.append(profile)
        return left

    def _there(self, withdrawn: Sequence[PilotView]) -> list[Member]:
        gone = {pilot.id for pilot in withdrawn}
        return [self._member(pilot) for pilot in self.bag.pilots if pilot.id not in gone]

    def _member(self, pilot: PilotView) -> Member:
        bag, slots = self.bag, self.bag.slots(pilot)
        if pilot.state is PilotState.RUNNING:
            age = max(1.0, mean_age(bag.demand.times, bag.now))
            return Member(0.0, max(0.0, (pilot.ends or bag.now) - bag.now), slots, age)
        start = self._free[bag.place_of(pilot.partition)].starts.get(job_of(pilot), bag.now)
        slots = min(1, slots) if bag.demand.alone else slots
        return Member(SOONER * max(0.0, start - bag.now), float(pilot.request.tr), slots)


def _needed(belief: Belief, until: float) -> float:
    """Seconds of a request that may be of use; a task that is started is to be finished."""
    return max(until + (0.0 if belief.alike else belief.longest), belief.longest)


def job_of(pilot: PilotView) -> str:
    """The name of its request in the queue; the scheduler may not show it yet (see `places_of`)."""
    return f"pilot {pilot.id}" if pilot.job is None else pilot.job
