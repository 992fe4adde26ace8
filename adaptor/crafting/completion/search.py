"""Which requests complete a bag first, beside those that are there or instead of one of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import Wanted, rules_for
from adaptor.crafting.completion.beliefs import Belief, beliefs
from adaptor.crafting.completion.progress import FINE, Progress, RequestSet, member_of
from adaptor.crafting.coverage import slots_left
from adaptor.crafting.fits import TINY, RequestShape
from adaptor.crafting.profile import Profile
from adaptor.crafting.queues import Place
from adaptor.crafting.situation import Elsewhere, Member, PilotView, PlanningView
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
AT_ONCE = 12
"""Requests chosen in one decision at most; the next one goes on."""


def steps_for(factor: float) -> float:
    """By how many steps of the grid a completion moves that comes sooner by a factor below 1."""
    return -math.log(factor) / math.log(FINE)


BETTER = steps_for(0.998)
"""A request must shorten the completion by this factor to be made."""


class Fitting(NamedTuple):
    """A request that may be made: the widest and longest of its hole."""

    place: int
    """The number of its place."""
    member: Member
    processors: int
    sure: int
    """Seconds, at most its length: surely started in its hole."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that serve a bag."""

    withdrawn: PilotView | None = None
    """The pilot that it does without."""
    set: RequestSet
    made: list[Fitting]
    """Those to be made, by start, and of those that start together in one place the widest first."""


class Search:
    """A bag, and the queues around it, planned once for a decision. Times are seconds from now on."""

    def __init__(self, view: PlanningView, places: Sequence[Place], wanted: Wanted) -> None:
        """
        Args:
            places: one of them is usable at least.
        """
        self.now, self.demand, self.pilots, self.allowed = (
            view.now,
            wanted.demand,
            wanted.pilots,
            wanted.allowed,
        )
        self.places = [_bounded(place, wanted) for place in places]
        self.shapes = [
            RequestShape.for_demand(place.rules, place.queue, self.demand) for place in self.places
        ]
        self.rules = max(
            (place.rules for place in self.places if place.usable), key=lambda rules: rules.limits.max_tr
        )
        """Of the usable place with the longest requests."""
        elsewhere = wanted.elsewhere or Elsewhere()
        self._elsewhere = list(elsewhere.members.values())
        self.tasks = self.demand.running + self.demand.waiting + elsewhere.running
        self.one_at_a_time = wanted.limit == 1
        self.believed = beliefs(self.demand.times, view.now, self.demand.running, self.rules)
        pad, pace = self.rules.pad, PACE_ALONE if self.one_at_a_time else PACE
        self._by_belief = [Progress(belief, self.tasks, pad, pace) for belief in self.believed]
        self._free = [place.free or Availability(place.queue) for place in places]
        self._profiles = [
            free.profile(shape.chunk) for free, shape in zip(self._free, self.shapes, strict=True)
        ]
        self._least = pad + max(self.demand.shortest, min(belief.longest for belief in self.believed))
        offers = [offer.member for offer in self._offers(self._profiles)]
        for progress in self._by_belief:
            progress.foresee(offers)
        self._as_is = self._without(None)

    @property
    def possible(self) -> bool:
        """Whether a request can hold a task in any of the usable places."""
        return any(
            place.usable and shape.widest for place, shape in zip(self.places, self.shapes, strict=True)
        )

    def in_state(self, state: PilotState) -> list[PilotView]:
        """The pilots of the bag in this state, in order of issue."""
        return [pilot for pilot in self.pilots if pilot.state is state]

    def wait(self, pilot: PilotView) -> float:
        """Seconds until the planned start of a queued pilot."""
        starts = self._free[self._place_of(pilot)].starts
        return max(0.0, starts.get(pilot.queued_as, self.now) - self.now)

    def kept(self) -> Choice:
        """All that is there, and the best of what may be made beside it."""
        return self._best(None, self._profiles, self._as_is, 0.0)

    def instead_of(self, pilot: PilotView, mark: RequestSet, least: float) -> Choice | None:
        """The best if a pilot leaves, where the other jobs keep their planned starts.

        None: it is not sooner than a set by more than `least` steps.
        """
        left = [
            free.without(pilot.queued_as).profile(shape.chunk)
            for free, shape in zip(self._free, self.shapes, strict=True)
        ]
        best = self._best(pilot, left, mark, least)
        return best if best.set.worth < mark.worth - least else None

    def request(self, made: Fitting, ends: Sequence[float]) -> Request:
        """As long as the bag may need it by the belief that needs most, within its hole."""
        rules, start = self.places[made.place].rules, made.member.start
        needed = max(_needed(belief, end - start) for belief, end in zip(self.believed, ends, strict=True))
        needed = max(needed, self.demand.shortest) + rules.pad  # of tasks that were cut more is known
        needed = max(1.0, needed * (1.0 if start > 0 else SPARE), rules.least_tr)
        tr = int(min(made.member.length, round_up(needed - TINY, rules.time_resolution)))
        shape = self.shapes[made.place]
        enough = made.sure if start > 0 else min(made.sure, max(shape.enough(), shape.enough(self._least)))
        return shape.request(made.processors, tr, enough)

    def _best(
        self, withdrawn: PilotView | None, profiles: Sequence[Profile], mark: RequestSet, least: float
    ) -> Choice:
        """One by one the request that shortens the completion most.

        The first one in the place of a pilot is to bring more than that pilot. Where no other one may follow,
        it is to make the set sooner than `mark` by `least` steps.
        """
        found, made, gone = self._as_is, list[Fitting](), int(withdrawn is not None)
        left = [place.allowed for place in self.places]
        most = math.inf if self.demand.most is None else self.demand.most
        if withdrawn is not None:
            left[self._place_of(withdrawn)] += 1
            most += withdrawn.request.p
            found = self._without(withdrawn)
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
                if (left[offer.place] > 0 if allowed else self._wide(offer))
            ]
            last = gone and allowed + beside == 1
            worth, marks = (least, mark.steps) if last else (BETTER, None if made else self._as_is.steps)
            addition = self._addition(found, offers, profiles, latest, worth, marks)
            if addition is None:
                break
            best, start, steps = addition
            self._take(profiles, best, start)
            if beside and not best.member.start:
                beside -= 1
            else:
                allowed -= 1
                left[best.place] -= 1
            known = steps if found.members else None
            found = RequestSet(self._by_belief, [*found.members, best.member], known)
            most -= best.processors
            made.append(best)
        if not several:
            made.sort(key=lambda request: (-request.member.slots, request.member.length))
        made.sort(key=lambda request: request.member.start)  # in several places each has what others leave
        return Choice(withdrawn=withdrawn, set=found, made=made)

    def _addition(
        self,
        found: RequestSet,
        offers: list[Fitting],
        profiles: Sequence[Profile],
        latest: float,
        least: float,
        marks: list[int] | None,
    ) -> tuple[Fitting, float, list[int]] | None:
        """The offer that shortens the completion most, its start (epoch seconds) and the completions with it.

        Where one node comes free as another one is taken, the sum of both is no hole: such an offer fits
        later, and is weighed anew.
        """
        while addition := found.best_addition(
            [offer.member for offer in offers], least, marks, alone=self.one_at_a_time
        ):
            number, steps = addition
            offer = offers[number]
            start = profiles[offer.place].earliest_start(
                offer.processors, self._held(offer), self.now + offer.member.start
            )
            if start - self.now <= offer.member.start + TINY:
                return offer, start, steps
            if start - self.now <= latest:
                sure = self.shapes[offer.place].sure_tr(self._held(offer))
                member = offer.member._replace(start=start - self.now)
                offers[number] = offer._replace(member=member, sure=sure)
            else:
                del offers[number]
        return None

    def _wide(self, offer: Fitting) -> bool:
        return offer.processors >= WIDE * self.shapes[offer.place].widest

    def _offers(
        self, profiles: Sequence[Profile], most: float = math.inf, within: float = math.inf
    ) -> list[Fitting]:
        """The requests that fit, but those that another one of the place beats: it starts no later, lasts as
        long and has as many slots."""
        found, until = list[Fitting](), self.now + within
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
                p = shape.fit(int(min(slot.processors, widest)))
                length = shape.longest_tr(slot.duration, self._least)
                if not p or length < least:
                    continue
                if any(long >= length and wide >= p for long, wide in unbeaten):
                    continue
                unbeaten = [(long, wide) for long, wide in unbeaten if long > length or wide > p]
                unbeaten.append((length, p))
                start, slots = max(0.0, slot.start - self.now), shape.slots(p)
                slots = min(1, slots) if self.demand.alone else slots
                sure = shape.sure_tr(slot.duration)
                found.append(Fitting(number, Member(start, float(length), slots), p, sure))
                if length == longest and p == best:  # all that start later are beaten
                    break
        return found

    def _held(self, made: Fitting) -> float:
        """Seconds for which its processors must be free."""
        return made.member.length + self.places[made.place].rules.margin

    def _take(self, profiles: Sequence[Profile], made: Fitting, start: float) -> None:
        """Of its place, and of those that share nodes with it: which nodes it gets is not known."""
        for place, profile in zip(self.places, profiles, strict=True):
            if place.shares_with(self.places[made.place]):
                there = min(made.processors, profile.minimum(start, start + self._held(made)))
                if there > 0:
                    profile.take(start, self._held(made), there)

    def _without(self, withdrawn: PilotView | None) -> RequestSet:
        """What is there, at other sites too, but for one pilot."""
        stay = [self._member(pilot) for pilot in self.pilots if pilot is not withdrawn]
        return RequestSet(self._by_belief, stay + self._elsewhere)

    def _member(self, pilot: PilotView) -> Member:
        slots = slots_left(pilot, self.demand, self.shapes[self._place_of(pilot)].unit)
        return member_of(pilot, self.demand, slots, self.wait(pilot), self.now)

    def _place_of(self, pilot: PilotView) -> int:
        """The number of its place; the first one where its partition is shown no longer."""
        names = [place.name for place in self.places]
        return names.index(pilot.partition) if pilot.partition in names else 0


def _bounded(place: Place, wanted: Wanted) -> Place:
    """A place with the bounds of the demand, but for that on processors: it is one of all requests together,
    and one that is withdrawn widens it."""
    rules = rules_for(place.rules, msgspec.structs.replace(wanted.demand, most=None))
    allowed = place.allowed if place.name else wanted.allowed
    return msgspec.structs.replace(place, rules=rules, allowed=allowed)


def _needed(belief: Belief, until: float) -> float:
    """Seconds of a request that may be of use; a task that is started is to be finished."""
    return max(until + (0.0 if belief.alike else belief.longest), belief.longest)
