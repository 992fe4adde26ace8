"""Requests of a bag with aims in one of its possible courses: A²HA, its deadline and its quote. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.provisioning.a2ha import goes_on
from adaptor.budget.provisioning.hosts import Hosts
from adaptor.budget.provisioning.pacing import (
    Course,
    Pace,
    advise,
    least_request,
    longest_before,
    longest_to_learn,
    situation_of,
)
from adaptor.budget.provisioning.presets import preset_of
from adaptor.crafting.fits import width
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.known import KnownSite
from adaptor.forecast.supply import Moment


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on the requests that may be made at a site."""

    slots: int
    least_tr: int = 0
    """Seconds that each lasts at least."""
    longest: int | None = None
    """Seconds that each lasts at most; None: only the limits of the site apply."""


class Buyer:
    """Buys for one course of a bag; keeps the pace of its estimator."""

    def __init__(self, bag: BagFacts, pace: Pace | None = None) -> None:
        self._bag, self._pace = bag, pace
        self._preset, self._deadline = preset_of(bag.spec.prefer), bag.spec.deadline

    def bounds(self, site: KnownSite, moment: Moment) -> Bounds:
        """Bounds on the requests now, as `decisions.aims` decides them."""
        longest, rules, name = None, site.view.rules, site.view.name
        if self._deadline is not None:
            needed = moment.needed(name) + rules.pad
            unit = site.terms.unit if site.whole_units and site.terms is not None else 0.0
            longest = longest_before(self._deadline, moment.now, needed, unit, rules.time_resolution)
        course = self._course(site, moment)
        if self._deadline is not None:
            longest = longest_to_learn(course, longest, needed, rules.time_resolution)
        paced = advise(course, self._pace)
        self._pace = paced.pace
        if not site.whole_units or site.terms is None:
            return Bounds(slots=paced.advice.hosts, longest=longest)
        ends = site.end_takes is not None
        shortest = moment.learners[name].estimate + rules.pad
        unit, resolution = site.terms.unit, rules.time_resolution
        least = least_request(paced.advice.units, unit, shortest, resolution, ends=ends)
        return Bounds(slots=paced.advice.hosts, least_tr=least, longest=least if ends else longest)

    def bought(self, slots: int) -> None:
        """Note that this number of slots was requested."""
        if self._pace is not None:
            self._pace = self._pace.without(slots)

    def goes_on(self, site: KnownSite, moment: Moment, ages: Sequence[float]) -> bool:
        """Whether half of a pilot's tasks at least should go on for another charging unit.

        Args:
            ages: seconds for which they have run.
        """
        others = situation_of(self._course(site, moment))
        going = sum(goes_on(others, self._preset, age) for age in ages)
        return bool(ages) and 2 * going >= len(ages)

    def _course(self, site: KnownSite, moment: Moment) -> Course:
        assert site.terms is not None
        name, rules = site.view.name, site.view.rules
        learner, limits = moment.learners[name], rules.limits
        lasting = [Hosts(pilot.slots, pilot.began + rules.pad, pilot.end) for pilot in moment.held]
        return Course(
            now=moment.now,
            # As many as the course follows: slots that count as one round them.
            tasks=moment.seen.finished + moment.seen.running + moment.waiting,
            known=msgspec.structs.replace(moment.seen, earlier=learner.seen.earlier),
            hosts=[
                msgspec.structs.replace(
                    hosts, ends=site.terms.paid_until(pilot.began, pilot.end - pilot.began, moment.now)
                )
                for hosts, pilot in zip(lasting, moment.held, strict=True)
            ],
            lasting=lasting,
            terms=site.terms,
            preset=self._preset,
            assumed=learner.assumed,
            needed=moment.needed(name) if learner.knows else 0.0,
            deadline=self._deadline,
            slow=self._bag.spec.prefer is None,
            whole_units=site.whole_units,
            requests_left=max(0, limits.in_system - sum(pilot.site == name for pilot in moment.held)),
            widest=max(1, limits.max_proc // width(site.view.queue, self._bag.spec.task)),
            newest=max((pilot.began for pilot in moment.held), default=-math.inf),
        )
