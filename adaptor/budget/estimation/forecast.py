"""What a bag that is bought for by requests will cost, and when it will end, with an interval. Pure."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache

import msgspec

from adaptor.budget.estimation.bag_knowledge import BagKnowledge
from adaptor.budget.estimation.estimate import Estimate, estimate
from adaptor.budget.estimation.pilot_course import Case, PilotCourse, Residuals
from adaptor.budget.estimation.remaining_work import Rest, possible_rests

FIRST = 30
"""Finished tasks before a forecast is worth its name."""


class Forecast(msgspec.Struct, frozen=True):
    """With an interval in which each figure lies with probability 0.9."""

    cost: Estimate
    """Credits in the end, those charged already included."""
    end: Estimate | None
    """Epoch seconds; None while nothing is there or asked for that could end it."""
    work: Estimate
    """Seconds of a slot that the tasks without a result still need."""
    least: float = 0.0
    """Credits for the least of this work, where nothing more is wasted."""


def worth_telling(finished: int, tasks: int) -> bool:
    """Whether enough is known: 30 tasks, fewer in a small bag."""
    return finished >= max(2, min(FIRST, tasks // 4))


def forecast(known: BagKnowledge) -> Forecast:
    """What the possible rests (`possible_rests`) cost and when they end, on the pilots and on further ones.

    The work flows through the slots of the pilots, each from its start to its end. Where they have no time
    for all of it, pilots that would end with a charging unit go on, and further ones are asked for, sooner or
    later. A pilot is held until its last task ends, and charged in whole units.

    Raises:
        ValueError: fewer than two tasks have finished.
    """
    longest = max(*known.finished, *known.running, 0.0)
    rests = possible_rests(known.finished, known.running, known.waiting, longest, known.every)
    work = estimate(each.work for each in rests)
    if not work.high:
        at = Estimate(known.now, known.now, known.now)
        cost = Estimate(known.charged, known.charged, known.charged)
        return Forecast(cost, at, work, known.charged)
    residuals = Residuals(known.finished)
    ending = sum(each.end < each.last_end for each in known.pilots)

    @cache
    def course(going: int) -> PilotCourse:
        return PilotCourse(known.gone_on(going), residuals, longest, work)

    def enough(rest: Rest) -> PilotCourse:
        """With as many pilots that go on as the work needs."""
        return course(bisect_left(range(ending), True, key=lambda going: course(going).has_time_for(rest)))

    draw = random.Random(1)  # noqa: S311
    cases = [enough(rest).of(rest, draw) for rest in rests]
    cost = estimate(known.charged + each.cost for each in cases)
    least = known.charged + known.rate * max(0.0, work.low - course(0).paid)
    cost = Estimate(max(least, cost.low), max(least, cost.value), max(least, cost.high))
    return Forecast(cost, _end(known, work, cases) if known.pilots else None, work, least)


def _end(known: BagKnowledge, work: Estimate, cases: Sequence[Case]) -> Estimate:
    """The ends of the cases; at the earliest the slots share the least work without any loss."""
    found = estimate(each.end for each in cases)
    first = max(known.now, min(each.start for each in known.pilots))
    return Estimate(min(found.low, first + work.low / max(1, known.slots)), found.value, found.high)
