"""Which requests complete a bag first, beside those that are there or instead of some of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import NamedTuple

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import Wanted, rules_for
from adaptor.crafting.completion.beliefs import Belief, beliefs, first_runtime, mean_age
from adaptor.crafting.completion.progress import FINE, Member, Progress, RequestSet
from adaptor.crafting.coverage import slots_in
from adaptor.crafting.fits import TINY, RequestShape
from adaptor.crafting.profile import Profile
from adaptor.crafting.queues import Place
from adaptor.crafting.situation import PilotView, PlanningView
from adaptor.model import PilotState, Request
from adaptor.units import round_up

PACE, PACE_ALONE = 0.55, 1.0
"""Speed of later requests relative to the same requests now, whose holes are then taken; with one request at
a time."""
SPARE = 2.0
"""Walltime of a request that starts now, relative to the time that it needs by the forecast."""
SOONER = 0.7
"""Expected wait of a queued request relative to the planned one, as jobs end before their limits."""
BESIDE, WIDE = 4, 0.25
"""Extra immediate requests considered when more than one request is allowed, each of this part of the widest
at least. They displace the latest-starting ones, which can be issued later."""
FAR = 4.0
"""A request starts within this multiple of the completion so far; a later one can be made later."""
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
    """Requests that serve a bag."""

    withdrawn: PilotView | None = None
    """The pilot that it does without."""
    set: RequestSet
    made: list[Made]
    """Those to be made, by start, and of those that start together in one place the widest first."""


class Search:
    """A bag, and the queues around it, planned once for a decision. Times are seconds from now on."""

    def __init__(
        self, view: PlanningView, places: Sequence[Place], wanted: Wanted, usable: Container[str]
    ) -> None:
        """
        Args:
            usable: the partitions where requests may be made now, one at least.
        """
        self.now, self.demand, self.pilots = view.now, wanted.demand, wanted.pilots
        self.allowed = wanted.allowed
        self.places = [_bounded(place, wanted, usable=place.name in usable) for place in places]
        self.shapes = [RequestShape.for_demand(each.rules, each.queue, self.demand) for each in self.places]
        open_rules = [place.rules for place in self.places if place.usable]
        self.max_tr = max(rules.limits.max_tr for rules in open_rules)
        self.tasks = self.demand.running + self.demand.waiting
        self.one_at_a_time = wanted.limit == 1
        self.believed = beliefs(
            self.demand.times,
            view.now,
            self.demand.running,
            first_runtime(self.max_tr),
            max(rules.longest_task for rules in open_rules),
        )
        pad, pace = view.rules.pad, PACE_ALONE if self.one_at_a_time else PACE
        weight = sum(belief.weight for belief in self.believed)
        self._by_belief = [
            Progress(belief, belief.weight / weight, self.tasks, pad, pace) for belief in self.believed
        ]
        self._free = [place.free or Availability(place.queue) for place in places]
        self._profiles = [
            free.profile(shape.chunk) for free, shape in zip(self._free, self.shapes, strict=True)
        ]
        self._least = pad + max(self.demand.shortest, min(belief.longest for belief in self.believed))
        offers = [offer.member for offer in self._offers(self._profiles)]
        for progress in self._by_belief:
            progress.foresee(offers)
        self._as_is = RequestSet(self._by_belief, self._there(None), alone=self.one_at_a_time)

    @property
    def possible(self) -> bool:
        """Whether a request can hold a task in any of the usable places."""
        return any(
            place.usable and shape.widest for place, shape in zip(self.places, self.shapes, strict=True)
        )

    def place_of(self, partition: str) -> int:
        """The number of the place with this name; the first one where it gets no request now."""
        names = [place.name for place in self.places]
        return names.index(partition) if partition in names else 0

    def with_state(self, state: PilotState) -> list[PilotView]:
        """The pilots of the bag in this state, in order of issue."""
        return [pilot for pilot in self.pilots if pilot.state is state]

    def kept(self) -> Choice:
        """All that is there, and the best of what may be made beside it."""
        return self._best(None, self._profiles, self._as_is, 0.0)

    def without(self, pilot: PilotView, mark: RequestSet, least: float) -> Choice | None:
        """The best if a pilot leaves; None: it is not sooner than a set by more than `least` places."""
        best = self._best(pilot, self._left_by(pilot), mark, least)
        return best if best.set.worth < mark.worth - least else None

    def request(self, made: Made, ends: Sequence[float]) -> Request:
        """As long as the bag may need it by the belief that needs most."""
        rules, start = self.places[made.place].rules, made.member.start
        needed = max(_needed(belief, end - start) for belief, end in zip(self.believed, ends, strict=True))
        needed = max(needed, self.demand.shortest) + rules.pad  # of tasks that were cut more is known
        needed = max(1.0, needed * (1.0 if start > 0 else SPARE), rules.least_tr)
        tr = min(made.member.length, round_up(needed - TINY, rules.time_resolution))
        return Request(made.processors, int(tr))

    def _best(
        self, withdrawn: PilotView | None, profiles: Sequence[Profile], mark: RequestSet, least: float
    ) -> Choice:
        """One by one the request that shortens the completion most.

        The first one in the place of a pilot is to bring more than that pilot. Where no other one may follow,
        it is to make the set sooner than `mark` by `least` places.
        """
        found, made, gone = self._as_is, list[Made](), int(withdrawn is not None)
        left = [place.allowed for place in self.places]
        most = math.inf if self.demand.most is None else self.demand.most
        if withdrawn is not None:
            left[self.place_of(withdrawn.partition)] += 1
            most += withdrawn.request.p
            found = RequestSet(self._by_belief, self._there(withdrawn), alone=self.one_at_a_time)
        profiles = [profile.copy() for profile in profiles]
        allowed = min(AT_ONCE, self.allowed + gone)
        ended = withdrawn is not None and withdrawn.state is PilotState.RUNNING
        several = len(self.places) > 1  # each has a limit of its own
        beside = 0 if self.one_at_a_time or several or ended or not allowed else BESIDE
        while allowed or beside:
            latest = FAR * found.cost if allowed else 0.0
            offers = [
                offer
                for offer in self._offers(profiles, most, latest)
                if (left[offer.place] > 0 or not several) and (allowed or self._wide(offer))
            ]
            last = gone and allowed + beside == 1
            worth, beaten = (least, mark.places) if last else (BETTER, None if made else self._as_is.places)
            best = None
            while best is None and (
                addition := found.best_addition([offer.member for offer in offers], worth, beaten)
            ):
                number, completions = addition
                offer = offers[number]
                fits = self._fits(offer, profiles)
                start = fits - self.now
                if start <= offer.member.start + TINY:
                    best = offer
                elif start <= latest:
                    offers[number] = offer._replace(member=offer.member._replace(start=start))
                else:
                    del offers[number]
            if best is None:
                break
            self._take(profiles, best, fits)
            if beside and not best.member.start:
                beside -= 1
            else:
                allowed -= 1
                left[best.place] -= 1
            found = found.joined(best.member, completions if found.members else None)
            most -= best.processors
            made.append(best)
        if not several:
            made.sort(key=lambda each: (-each.member.slots, each.member.length))
        made.sort(key=lambda each: each.member.start)  # of several places: the next has what the first leaves
        return Choice(withdrawn=withdrawn, set=found, made=made)

    def _wide(self, offer: Made) -> bool:
        return offer.processors >= WIDE * self.shapes[offer.place].widest

    def _offers(
        self, profiles: Sequence[Profile], most: float = math.inf, within: float = math.inf
    ) -> list[Made]:
        """The requests that fit, each the widest and longest of its hole.

        Those that another one of the place beats are left out: it starts no later, lasts as long and has as
        many slots.
        """
        found, until = list[Made](), self.now + within
        for number, profile in enumerate(profiles):
            place, shape = self.places[number], self.shapes[number]
            tasks = 1 if self.demand.alone else self.tasks
            widest = min(shape.widest, shape.processors_for(tasks), most) if place.usable else 0
            longest = place.rules.limits.max_tr
            least, best = min(self._least, longest), shape.fit(int(widest))
            unbeaten: list[tuple[float, int]] = []
            for slot in profile.free_slots() if widest else ():
                if slot.start > until:
                    break
                if slot.duration < least:
                    continue
                p, length = shape.fit(int(min(slot.processors, widest))), shape.longest_tr(slot.duration)
                if not p or length < least:
                    continue
                if any(long >= length and wide >= p for long, wide in unbeaten):
                    continue
                unbeaten = [(long, wide) for long, wide in unbeaten if long > length or wide > p]
                unbeaten.append((length, p))
                start = max(0.0, slot.start - self.now)
                found.append(Made(number, Member(start, float(length), self._slots(number, p)), p))
                if length == longest and p == best:  # all that start later are beaten
                    break
        return found

    def _slots(self, place: int, processors: int) -> int:
        slots = self.shapes[place].slots(processors)
        return min(1, slots) if self.demand.alone else slots

    def _fits(self, made: Made, profiles: Sequence[Profile]) -> float:
        """When a request fits from its start on, epoch seconds; `math.inf`: never.

        Where one node comes free as another one is taken, the sum of both is no hole, and it is later.
        """
        length = made.member.length + self.places[made.place].rules.slot_margin
        return profiles[made.place].earliest_start(made.processors, length, self.now + made.member.start)

    def _take(self, profiles: Sequence[Profile], made: Made, start: float) -> None:
        """Of its place, and of those that share nodes with it: which nodes it gets is not known."""
        end = start + made.member.length + self.places[made.place].rules.slot_margin
        for place, profile in zip(self.places, profiles, strict=True):
            if place.shares_with(self.places[made.place]):
                there = min(made.processors, profile.minimum(start, end))
                if there > 0:
                    profile.take(start, end - start, there)

    def _left_by(self, pilot: PilotView) -> list[Profile]:
        """What is free without a pilot. The other jobs are taken to keep their planned starts."""
        left, job = [], job_of(pilot)
        for number, place in enumerate(self.places):
            if place.queue.nodes:
                left.append(self._free[number].without(job).profile(self.shapes[number].chunk))
                continue
            profile = self._profiles[number].copy()
            start, end = self.now, pilot.ends or self.now
            if pilot.state is not PilotState.RUNNING:
                start = self._free[number].starts.get(job, math.inf)
                end = start + pilot.request.tr
            if start < end:
                profile.give(start, end - start, pilot.request.p)
            left.append(profile)
        return left

    def _there(self, withdrawn: PilotView | None) -> list[Member]:
        return [self._member(pilot) for pilot in self.pilots if pilot is not withdrawn]

    def _member(self, pilot: PilotView) -> Member:
        processors = pilot.processors if pilot.state is PilotState.RUNNING else None
        place = self.place_of(pilot.partition)
        slots = slots_in(
            pilot,
            pilot.request.p if processors is None else processors,  # on the workers that are still connected
            self.demand,
            self.shapes[place].unit,
        )
        if pilot.state is PilotState.RUNNING:
            age = max(1.0, mean_age(self.demand.times, self.now))
            return Member(0.0, max(0.0, (pilot.ends or self.now) - self.now), slots, age)
        slots = min(1, slots) if self.demand.alone else slots
        return Member(SOONER * self.wait(pilot), float(pilot.request.tr), slots)

    def wait(self, pilot: PilotView) -> float:
        """Seconds until the planned start of a queued pilot."""
        starts = self._free[self.place_of(pilot.partition)].starts
        return max(0.0, starts.get(job_of(pilot), self.now) - self.now)


def _bounded(place: Place, wanted: Wanted, *, usable: bool) -> Place:
    """A place with the bounds of the demand, but for that on processors: it is one of all requests together,
    and one that is withdrawn widens it."""
    rules = rules_for(place.rules, msgspec.structs.replace(wanted.demand, most=None))
    allowed = place.allowed if place.name else wanted.allowed
    return msgspec.structs.replace(place, rules=rules, usable=usable, allowed=allowed)


def _needed(belief: Belief, until: float) -> float:
    """Seconds of a request that may be of use; a task that is started is to be finished."""
    return max(until + (0.0 if belief.alike else belief.longest), belief.longest)


def job_of(pilot: PilotView) -> str:
    """The name of its request in the queue; the scheduler may not show it yet (see `places_of`)."""
    return f"pilot {pilot.id}" if pilot.job is None else pilot.job
