"""The requests that complete a bag first, besides the present ones or instead of one of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import Wanted
from adaptor.crafting.completion.progress import FINE, Progress, RequestSet
from adaptor.crafting.coverage import slots_left
from adaptor.crafting.fits import TINY
from adaptor.crafting.places import Place
from adaptor.crafting.profile import Profile
from adaptor.crafting.serving import member_of
from adaptor.crafting.situation import Member, PilotView
from adaptor.model import PilotState, Request
from adaptor.units import round_up

PACE, PACE_ALONE = 0.55, 1.0
"""Speed of later requests relative to the same requests now, whose holes are then taken; with one request at
a time."""
SPARE = 2.0
"""Walltime of a request that starts now, relative to the time that it needs by the forecast: the forecast may
be too short, and a hole that is there now costs nothing."""
BESIDE, WIDE = 4, 0.25
"""Extra immediate requests considered when more than one request is allowed, each of this part of the widest
at least. They displace the latest-starting ones, which can be issued later."""
FAR = 4.0
"""A request starts within this multiple of the completion so far: by then the runtimes are known, and a later
request can be made later."""
AT_ONCE = 12  # requests chosen in one decision at most; the next one goes on


def steps_for(factor: float) -> float:
    """Number of steps of the grid by which a completion moves that comes sooner by a factor below 1."""
    return -math.log(factor) / math.log(FINE)


Bar = tuple[float, list[int]]
"""Steps by which a completion must be sooner, and the completions by belief that it must beat."""


class Fitting(NamedTuple):
    """A request that may be made: the widest and longest of its hole."""

    where: int
    """The number of its place."""
    member: Member
    processors: int
    room: float
    """Seconds of its hole."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that serve a bag."""

    withdrawn: PilotView | None = None
    """The pilot that it does without."""
    set: RequestSet
    made: list[Fitting]
    """Requests to be made, by start; of those that start together in one place the widest first."""


class Search:
    """A bag, and the queues around it, planned once for a decision. Times are seconds from now on."""

    def __init__(self, places: Sequence[Place], wanted: Wanted) -> None:
        """One of the `places`, all of one site, is open at least."""
        site = places[0].site
        self.now, self.allowed, self.demand = site.now, wanted.allowed, wanted.demand
        self.places = places
        # The bound on processors is one of all requests together, and one that is withdrawn widens it.
        unbounded = msgspec.structs.replace(self.demand, most=math.inf)
        self.shapes = [place.shape(unbounded) for place in places]
        rules = [shape.rules for place, shape in zip(places, self.shapes, strict=True) if not place.closed]
        self.rules = max(rules, key=lambda each: each.limits.max_tr)
        """Rules of the open place with the longest requests."""
        self.pilots = wanted.pilots
        self._elsewhere = list(wanted.elsewhere.values())
        self.tasks = self.demand.running + self.demand.waiting  # present tasks; a request is no wider
        self.one_at_a_time = site.rules.limits.in_system == 1
        self.believed = self.demand.times.beliefs(
            site.now, self.demand.running, self.rules.longest_task, self.rules.usual_share
        )
        pad, pace = self.rules.pad, PACE_ALONE if self.one_at_a_time else PACE
        tasks = self.tasks + self.demand.coming
        self._by_belief = [Progress(belief, tasks, pad, pace) for belief in self.believed]
        self._free = [place.free for place in places]
        self._least = pad + max(self.demand.shortest, min(belief.longest for belief in self.believed))
        self._most = pad + max(belief.longest for belief in self.believed)
        offers = [offer.member for offer in self._offers(self._seen(self._free))]
        for progress in self._by_belief:
            progress.foresee(offers)
        self._as_is = self._without()

    def in_state(self, state: PilotState) -> list[PilotView]:
        """The pilots of the bag in this state, in order of issue."""
        return [pilot for pilot in self.pilots if pilot.state is state]

    def wait(self, pilot: PilotView) -> float:
        """Seconds until the planned start of a queued pilot."""
        starts = self._free[self._number_of(pilot)].starts
        return max(0.0, starts.get(pilot.queued_as, self.now) - self.now)

    def slots(self, pilot: PilotView) -> int:
        """Tasks that run in a pilot at the same time."""
        return slots_left(pilot, self.demand, self.shapes[self._number_of(pilot)].unit)

    def request(self, made: Fitting, ends: Sequence[float]) -> Request:
        """The request, as long as the bag may need it by the belief that needs most, with the tasks that it
        has started, within its hole; no longer than all tasks can take until their time-out."""
        rules, start = self.shapes[made.where].rules, made.member.start
        needed = self.demand.shortest
        for belief, end in zip(self.believed, ends, strict=True):
            needed = max(needed, belief.longest, end - start + (0.0 if belief.alike else belief.longest))
        needed = (needed + rules.pad) * (1.0 if start > 0 else SPARE)
        rounds = math.ceil((self.tasks + self.demand.coming) / made.member.slots)
        needed = min(needed, rounds * self.demand.times.ended_after + rules.pad)
        needed = max(1.0, needed, rules.least_tr)
        tr = int(min(made.member.length, round_up(needed - TINY, rules.time_resolution)))
        shape = self.shapes[made.where]
        enough = shape.sure_tr(made.room)
        if not start > 0:
            enough = min(enough, max(shape.enough(), shape.enough(self._least)))
        return shape.request(made.processors, tr, enough)

    def best(self, withdrawn: PilotView | None = None, bar: Bar | None = None) -> Choice:
        """The pilots except the withdrawn one, and one by one the request that shortens the completion most.
        If no job of others can come between, only the first request waits: more can be made when it ends.

        The first request in the place of the pilot must bring more than that pilot. If no other one may
        follow, it must clear the `bar`.
        """
        found, made = self._as_is, list[Fitting]()
        free, allowed, left = self._free, self.allowed, [place.allowed for place in self.places]
        most = self.demand.most
        several = len(self.places) > 1  # each has a limit of its own
        beside = 0 if self.one_at_a_time or several else BESIDE
        if withdrawn is not None:
            found, free = self._without(withdrawn), [plan.without(withdrawn.queued_as) for plan in free]
            left[self._number_of(withdrawn)] += 1
            most += withdrawn.request.p
            allowed += 1
        profiles = [profile.copy() for profile in self._seen(free)]
        allowed = min(AT_ONCE, allowed)
        beside *= allowed > 0
        while allowed or beside:
            waits = allowed and not (found.members and self.rules.ours_alone)
            latest = FAR * found.cost if waits else 0.0
            offers = [
                offer
                for offer in self._offers(profiles, most, latest)
                if (left[offer.where] > 0 if allowed else offer.processors >= WIDE * self.shapes[0].widest)
                and not self._needless(offer.member, found.members)
            ]
            usual = 0.0, (found if made else self._as_is).steps
            passed = bar if bar and allowed + beside == 1 else usual
            addition = self._take_best(found, offers, profiles, latest, passed)
            if addition is None:
                break
            best, steps = addition
            if beside and not best.member.start:
                beside -= 1
            else:
                allowed -= 1
                left[best.where] -= 1
            members, known = [*found.members, best.member], steps if found.members else None
            found = RequestSet(self._by_belief, members, known)
            most -= best.processors
            made.append(best)
        if not several:
            made.sort(key=lambda request: (-request.member.slots, request.member.length))
        made.sort(key=lambda request: request.member.start)  # in several places each has what others leave
        return Choice(withdrawn=withdrawn, set=found, made=made)

    def _needless(self, offer: Member, members: Sequence[Member]) -> bool:
        """Whether each task has a slot in members that begin no later and last as long as the offer or the
        longest task: `Progress` would have one task done sooner in two slots."""
        until = offer.start + min(offer.length, self._most)
        there = (member for member in members if member.start <= offer.start + TINY)
        slots = sum(member.slots for member in there if member.start + member.length >= until - TINY)
        return slots >= self.tasks + self.demand.coming

    def _take_best(
        self, found: RequestSet, offers: list[Fitting], profiles: Sequence[Profile], latest: float, bar: Bar
    ) -> tuple[Fitting, list[int]] | None:
        """Take the offer that shortens the completion most out of the profiles; the completions with it.

        Where one node comes free as another one is taken, the sum of both is no hole: such an offer fits
        later, and is weighed again.
        """
        while addition := found.best_addition(
            [offer.member for offer in offers], *bar, alone=self.one_at_a_time
        ):
            number, steps = addition
            offer, home = offers[number], self.places[offers[number].where]
            held, planned = offer.member.length + home.rules.margin, self.now + offer.member.start
            start = profiles[offer.where].earliest_start(offer.processors, held, planned)
            if start - self.now <= offer.member.start + TINY:
                profiles[offer.where].take(start, held, offer.processors)
                for place, profile in zip(self.places, profiles, strict=True):
                    if place is not home and place.shares_with(home):
                        _take_shared(profile, start, start + held, offer.processors)
                return offer, steps
            if start - self.now <= latest:
                member = offer.member._replace(start=start - self.now)
                offers[number] = offer._replace(member=member, room=held)
            else:
                del offers[number]
        return None

    def _offers(
        self, profiles: Sequence[Profile], most: float = math.inf, within: float = math.inf
    ) -> list[Fitting]:
        """The requests that fit, but those that another one of the place beats: it starts no later, lasts as
        long and has as many slots."""
        found, until = list[Fitting](), self.now + within
        for number, profile in enumerate(profiles):
            place, shape = self.places[number], self.shapes[number]
            tasks = 1 if self.demand.alone else self.tasks
            widest = min(shape.widest, shape.processors_for(tasks), most) if not place.closed else 0
            longest, best = shape.rules.limits.max_tr, shape.fit(int(widest))
            least = min(self._least, longest)
            unbeaten: list[tuple[float, int]] = []
            for slot in profile.free_slots() if widest else ():
                if slot.start > until:
                    break
                if slot.duration < least:
                    continue
                p = shape.fit(int(min(slot.processors, widest)))
                length = shape.longest_tr(slot.duration, self._least)
                if not p or length < least or any(long >= length and wide >= p for long, wide in unbeaten):
                    continue
                unbeaten = [(long, wide) for long, wide in unbeaten if long > length or wide > p]
                unbeaten.append((length, p))
                slots = min(1, shape.slots(p)) if self.demand.alone else shape.slots(p)
                member = Member(max(0.0, slot.start - self.now), float(length), slots)
                found.append(Fitting(number, member, p, slot.duration))
                if length == longest and p == best:  # all that start later are beaten
                    break
        return found

    def _seen(self, free: Sequence[Availability]) -> list[Profile]:
        """Profile of processors that are free for requests of this bag, by place."""
        return [plan.profile(shape.chunk) for plan, shape in zip(free, self.shapes, strict=True)]

    def _without(self, withdrawn: PilotView | None = None) -> RequestSet:
        """The pilots, at other sites too, except one."""
        there = list[Member]()
        for pilot in self.pilots:
            if pilot is not withdrawn:
                there.append(member_of(pilot, self.demand, self.slots(pilot), self.wait(pilot), self.now))
        return RequestSet(self._by_belief, there + self._elsewhere)

    def _number_of(self, pilot: PilotView) -> int:
        """The number of its place; the first one where its partition is shown no longer."""
        names = [place.name for place in self.places]
        return names.index(pilot.partition) if pilot.partition in names else 0


def _take_shared(profile: Profile, start: float, end: float, processors: int) -> None:
    """Take what a request of another place may get here; which of the shared nodes it gets is not known."""
    if profile.minimum(start, end) >= processors:
        profile.take(start, end - start, processors)
        return
    within = [time for time, _ in profile.steps() if start < time < end]
    for begin, until in pairwise((start, *within, end)):
        there = min(processors, profile.minimum(begin, until))
        if there > 0:
            profile.take(begin, until - begin, there)
