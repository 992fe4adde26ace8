"""The least cost of a bag by trying all ways to hold each processor, for few processors."""

from __future__ import annotations

import itertools
import math

import msgspec

from adaptor.budget.provisioning.allocation import least_time
from adaptor.budget.provisioning.ways import CONFIDENCE


def least_cost_within(tasks, offers, seconds, confidence=CONFIDENCE):
    """Credits; infinite: it cannot be done. Nothing is held yet.

    All ends of units until then are tried, for each processor; of those that are charged by the second the
    last one is held for a part of the time.
    """
    found = [_ways(tasks, offer, seconds, confidence ** (1 / len(offers))) for offer in offers]
    least = min(cost for done, cost in _all(tasks, offers, found) if done >= tasks - 1e-9)
    for place, offer in enumerate(offers):
        if offer.divisible and offer.processors:
            (*_, (more, whole)), start = found[place], offer.cost(offer.startup)
            others = [_one_less(each) if each is offer else each for each in offers]
            for done, cost in _all(tasks, others, found):
                if more and 0 < (share := (tasks - done) / more) <= 1:
                    least = min(least, cost + start + share * (whole - start))
    return least


def _ways(tasks, offer, seconds, confidence):
    """Tasks and credits; the last one is until the end."""
    ends, tail = [], offer.task.last_end(offer.processors, confidence)
    if not offer.divisible:
        ends = [units * offer.charging_unit for units in range(1, math.ceil(seconds / offer.charging_unit))]
    found = [(offer.task.completed(end - offer.startup, fresh=True), offer.cost(end)) for end in ends]
    left = seconds - offer.startup
    done = min(offer.task.started(left - tail, fresh=True), offer.task.completed(left, fresh=True))
    until = min(seconds, offer.startup + done * offer.task.mean)
    return [(0.0, 0.0), *found, (done, offer.cost(until))]


def _all(tasks, offers, ways):
    """All numbers of processors in all ways: tasks and credits, with what none can do at an infinite cost."""
    states = [(0.0, 0.0)]
    for offer, found in zip(offers, map(_undominated, ways), strict=True):
        for _ in range(offer.processors):
            states = _undominated([_sum(*pair) for pair in itertools.product(states, found)], tasks)
    return [(tasks, math.inf), *states]


def _one_less(offer):
    return msgspec.structs.replace(offer, processors=offer.processors - 1)


def least_cost(tasks, offers):
    """Credits, however long it may take."""
    soonest = least_time(tasks, offers)
    latest = max(each.startup + tasks * (each.task.mean + each.task.deviation) for each in offers) * 1.5
    steps = [soonest * (latest / soonest) ** (step / 40) for step in range(41)]
    alone = [each.startup + tasks * each.task.mean * 1.01 for each in offers]
    return min(least_cost_within(tasks, offers, seconds) for seconds in [*steps, *alone])


def least_seconds(tasks, offers, budget):
    """From which on, for 5 % more of time at least, the budget is enough."""
    seconds = least_time(tasks, offers)
    while any(least_cost_within(tasks, offers, seconds * more) > budget for more in (1, 1.025, 1.05)):
        seconds *= 1.01
    return seconds


def _sum(one, other):
    return one[0] + other[0], one[1] + other[1]


def _undominated(states, enough=math.inf):
    """States none of which is beaten by one that does as much for less."""
    kept, least = [], math.inf
    for done, cost in sorted(
        ((min(done, enough), cost) for done, cost in states), key=lambda s: (-s[0], s[1])
    ):
        if cost < least:
            kept.append((done, cost))
            least = cost
    return kept
