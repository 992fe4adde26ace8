"""Ways to hold a processor, and the cheapest of them that do the tasks of a bag. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer

MOST_LENGTHS = 4
"""Whole units that are considered: the last ones before the deadline, and those in which 1, 2, … processors
do all tasks."""

EQUAL = 1e-9  # relative: what differs by less is equal
CONFIDENCE = 0.6
"""Confidence that all tasks that run at the last start have ended by the deadline: a little above one
half."""


PART = 1e-6  # of a processor: what is less is rounding
WASTE = 0.01  # of the tasks: what is held beyond them without more being tried
ROUNDS = 200  # of changes of one or two processors; each makes the allocation cheaper


class Way(msgspec.Struct, frozen=True):
    """One processor of a site, held from now on for some time."""

    site: int
    """Place among the offers."""
    group: int
    """Place among `held` of the offer; -1: it is still to be bought."""
    seconds: float
    tasks: float
    """Expected to be started, and ended before the deadline and before `seconds`."""
    cost: float
    """Credits still to be charged."""
    fixed: float = 0.0
    """Credits of them for the start-up, which is paid in full if a part of a processor is held."""


def all_ways(
    offers: Sequence[SiteOffer], deadline: float, tasks: float, confidence: float = CONFIDENCE
) -> list[Way]:
    """Ways that may be of use to do the tasks by the deadline, in seconds from now.

    With 0 tasks: of each group of processors the ways that do the most.
    """
    found: list[Way] = []
    for site, offer in enumerate(offers):
        tail = offer.task.last_end(offer.processors, confidence ** (1 / len(offers)))
        for group, held in [(-1, HeldSlots(offer.fresh, offer.wait)), *enumerate(offer.held)]:
            if held.processors:
                found.extend(_of_group(offer, site, group, held, deadline, tail, tasks))
    return [way for way in found if way.tasks > 0]


def _of_group(
    offer: SiteOffer, site: int, group: int, held: HeldSlots, deadline: float, tail: float, most: float
) -> Iterator[Way]:
    task, fresh = offer.task, group < 0
    startup = offer.wait + offer.startup if fresh else 0.0
    for end in _unit_ends(offer, held, startup, deadline, most):
        tasks = task.completed(end - startup, fresh)
        yield Way(site, group, end, tasks, offer.cost(end - held.paid))
    # Until the deadline. A pilot leaves when no task is left for it, and its last one runs to its end.
    tasks = task.started(deadline - tail - startup, fresh)
    if fresh:  # all of them start together, so their first tasks do not end sooner than a task takes
        tasks = min(tasks, task.completed(deadline - startup, fresh))
    seconds = deadline if offer.together else min(deadline, startup + tasks * task.mean)
    fixed = offer.cost(offer.startup) if fresh and offer.divisible else 0.0
    yield Way(site, group, seconds, tasks, offer.cost(seconds - held.paid), fixed)


def _unit_ends(
    offer: SiteOffer, held: HeldSlots, startup: float, deadline: float, tasks: float
) -> list[float]:
    """Instants before the deadline at which another unit would begin, where that matters."""
    unit, task = offer.charging_unit, offer.task
    if offer.divisible or offer.together:
        return []
    most = math.ceil((deadline - held.paid) / unit)
    if not tasks:
        return [end] if 0 < (end := held.paid + (most - 1) * unit) < deadline else []
    lengths = {0, *range(most - MOST_LENGTHS, most), *(most >> times for times in range(1, 30))}
    for processors in range(1, MOST_LENGTHS + 1):
        each = tasks / processors
        for runs in (math.ceil(each), each + (1 - (task.deviation / task.mean) ** 2) / 2):
            lengths.add(math.ceil((startup + runs * task.mean - held.paid) / unit - EQUAL))
    ends = [held.paid + units * unit for units in sorted(lengths) if units >= 0]
    return [end for end in ends if 0 < end < deadline]


Held = list[tuple[Way, float]]  # processors that are held in a way; parts of one where that is possible


def least_cost(ways: Sequence[Way], offers: Sequence[SiteOffer], tasks: float) -> Held | None:
    """Processors to hold in each way to do the tasks at the least cost; None: no way does them.

    Ricciardi & Hwang, §3, choice 1: the least C_prod, in credits. Of equal costs, the one with fewer
    processors still to be bought.

    It is a knapsack of alike items: the ways of a group of processors on their convex hull, by credits per
    further task, are the best except for the last processors. Changes of one or two mend those. If much more
    is held than the tasks need, it is tried without the processors that do most.

    Processors are paid for as long as the ways say: of those that are charged by the second, a part of one
    may be held, which is one that is held for a part of the time.
    """
    best: Held | None = None
    while capacity(ways, offers) >= tasks:
        held = _Allocated(ways, offers, tasks).found()
        if best is not None and cost_of(held) >= cost_of(best):
            break
        best = held
        if sum(way.tasks * count for way, count in held) <= (1 + WASTE) * tasks:
            break
        largest = max((way for way, _ in held), key=lambda way: way.tasks)
        ways = [way for way in ways if (way.site, way.group) != (largest.site, largest.group)]
    return best


def cost_of(held: Held) -> float:
    """Credits still to be charged."""
    return sum(count * way.cost + (math.ceil(count - PART) - count) * way.fixed for way, count in held)


class _Step(msgspec.Struct, frozen=True):
    """One processor of a group, or a part of one, goes from one way to another. -1: it is not held."""

    group: tuple[int, int]
    before: int
    after: int
    tasks: float
    cost: float
    number: float = 1.0


class _Allocated:
    """Processors by way, as they are chosen."""

    def __init__(self, ways: Sequence[Way], offers: Sequence[SiteOffer], tasks: float) -> None:
        self._ways = ways
        self._parts = [offers[way.site].divisible for way in ways]
        self._counts = [0.0] * len(ways)
        self._left = tasks
        self._slack = EQUAL * tasks
        self._groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, way in enumerate(ways):
            self._groups[way.site, way.group].append(place)
        self._free = {group: float(size(offers, *group)) for group in self._groups}
        parts = [at for at, way in enumerate(ways) if self._parts[at] and way.cost > 0]
        self._held_parts: list[int] = []
        self._dearest = sorted(parts, key=lambda at: -self._rate(ways[at]))

    def found(self) -> Held:
        self._fill()
        for _ in range(ROUNDS):
            if not self._mend():
                break
            self._leave_parts()
        return [(way, count) for way, count in zip(self._ways, self._counts, strict=True) if count > PART]

    def _fill(self) -> None:
        """Steps along the hulls, cheapest first, as far as whole processors are all needed."""
        steps = [step for group in self._groups for step in self._hull(group)]
        for step in sorted(steps, key=lambda step: (step.cost / step.tasks, step.group[1] < 0)):
            number = math.floor(min(self._held(step.group, step.before), self._left / step.tasks) + EQUAL)
            self._take(step, number)
            if self._left <= self._slack or self._held(step.group, step.before) >= 1:
                return

    def _hull(self, group: tuple[int, int]) -> Iterator[_Step]:
        """Steps on the convex hull, from the way of the least credits per task on; each next one has the
        least credits per further task."""
        at = -1
        while True:
            steps = [
                step for after in self._groups[group] if (step := self._step(group, at, after)).tasks > 0
            ]
            if not steps:
                return
            yield (best := min(steps, key=lambda step: (step.cost / step.tasks, -step.tasks)))
            at = best.after

    def _mend(self) -> bool:
        """Take the cheapest one or two steps after which all is done; False: none saves anything."""
        steps = list(self._steps())
        more = sorted((step for step in steps if step.tasks > 0), key=lambda step: step.tasks)
        cheapest = _cheapest_from(more)
        amounts = [step.tasks for step in more]
        parts = self._best_parts(more)
        rate = min((step.cost / step.tasks for step in more), default=0.0)
        self._held_parts = [place for place in self._dearest if self._counts[place] > 0]
        refundable = self._refund(math.inf)
        best: tuple[_Step, ...] = ()
        done = self._left <= self._slack
        least = -EQUAL * max((way.cost for way in self._ways), default=0.0) if done else math.inf
        for first in (None, *steps):
            missing, cost = (self._left - first.tasks, first.cost) if first else (self._left, 0.0)
            if cost + max(0.0, missing) * rate - refundable >= least:
                continue
            if missing <= self._slack:
                if (cost := cost - self._refund(-missing, first)) < least:
                    best, least = (first,) if first else (), cost
                continue
            place = bisect_left(amounts, missing - self._slack)
            for step in (*cheapest[place : place + 1], *(self._part(step, missing) for step in parts)):
                if first and (step.tasks < missing - self._slack or not self._both(first, step)):
                    continue
                both = cost + step.cost * max(1.0, missing / step.tasks)  # more of the kind do the rest
                if (both := both - self._refund(step.tasks - missing, first, step)) < least:
                    best, least = (first, step) if first else (step,), both
        for step in best:
            alike = min(self._left / step.tasks, self._held(step.group, step.before))
            self._take(step, max(1, math.floor(alike)) if len(best) == 1 else 1)
        return bool(best)

    def _best_parts(self, steps: Sequence[_Step]) -> list[_Step]:
        """Processors of which a part may be held, but those than which another does more for less."""
        found: list[_Step] = []
        parts = [step for step in steps if step.before < 0 and self._parts[step.after]]
        for step in sorted(parts, key=lambda step: (self._ways[step.after].fixed, -step.tasks)):
            rate = self._rate(self._ways[step.after])
            if all(rate < self._rate(self._ways[each.after]) or step.tasks > each.tasks for each in found):
                found.append(step)
        return found

    def _part(self, step: _Step, missing: float) -> _Step:
        """The part of a step that does the missing tasks, with all of its start-up."""
        number = min(1.0, missing / step.tasks)
        cost = step.cost * number + self._ways[step.after].fixed * (1 - number)
        return msgspec.structs.replace(step, tasks=step.tasks * number, cost=cost, number=number)

    def _both(self, one: _Step, other: _Step) -> bool:
        shared = (one.group, one.before) == (other.group, other.before)
        return not shared or self._held(one.group, one.before) >= 2

    def _refund(self, surplus: float, *steps: _Step | None) -> float:
        """Credits that `_leave_parts` saves after these steps, which do more tasks than there are."""
        saved, gone = 0.0, {step.before: step.number for step in steps if step}
        for place in self._held_parts:
            if surplus <= self._slack:
                break
            way = self._ways[place]
            less = min(max(0.0, self._counts[place] - gone.get(place, 0.0)) * way.tasks, surplus)
            saved += less * self._rate(way)
            surplus -= less
        return saved

    def _leave_parts(self) -> None:
        """Hold processors that are charged by the second no longer than there is work, the most expensive
        first."""
        for place in self._dearest:
            way = self._ways[place]
            if self._left < 0:
                number = min(self._counts[place], -self._left / way.tasks)
                self._take(self._step((way.site, way.group), place, -1), number)

    def _rate(self, way: Way) -> float:
        """Credits of a task, without the start-up."""
        return (way.cost - way.fixed) / way.tasks

    def _steps(self) -> Iterator[_Step]:
        """Possible changes of each processor that is held or free; a processor of which a part is held may
        only be given up."""
        for group, places in self._groups.items():
            for before in (-1, *places):
                there = self._held(group, before)
                if there >= 1 - EQUAL:
                    for after in (-1, *places):
                        if after != before:
                            yield self._step(group, before, after)
                elif before >= 0 and there > EQUAL:
                    way = self._ways[before]
                    cost = -there * way.cost - (1 - there) * way.fixed
                    yield _Step(group, before, -1, -there * way.tasks, cost, there)

    def _step(self, group: tuple[int, int], before: int, after: int) -> _Step:
        tasks, cost = self._of(after)
        tasks_before, cost_before = self._of(before)
        return _Step(group, before, after, tasks - tasks_before, cost - cost_before)

    def _of(self, place: int) -> tuple[float, float]:
        return (0.0, 0.0) if place < 0 else (self._ways[place].tasks, self._ways[place].cost)

    def _held(self, group: tuple[int, int], place: int) -> float:
        return self._free[group] if place < 0 else self._counts[place]

    def _take(self, step: _Step, times: float = 1.0) -> None:
        number = times * step.number
        for place, change in ((step.before, -number), (step.after, number)):
            if place < 0:
                self._free[step.group] += change
            else:
                self._counts[place] += change
        self._left -= times * step.tasks


def _cheapest_from(steps: Sequence[_Step]) -> list[_Step]:
    """The cheapest among each step and the steps behind it."""
    found: list[_Step] = []
    for step in reversed(steps):
        found.append(step if not found or step.cost < found[-1].cost else found[-1])
    return found[::-1]


def capacity(ways: Sequence[Way], offers: Sequence[SiteOffer]) -> float:
    """Tasks that are done if every processor is held in the way that does the most."""
    best: dict[tuple[int, int], float] = defaultdict(float)
    for way in ways:
        best[way.site, way.group] = max(best[way.site, way.group], way.tasks)
    return sum(tasks * size(offers, site, group) for (site, group), tasks in best.items())


def relaxed_cost(ways: Sequence[Way], offers: Sequence[SiteOffer], tasks: float) -> float:
    """A lower bound of the cost of the tasks; infinite where they cannot be done.

    Whole numbers are dropped, and so is the rule that a processor is held in one way only: each group of
    processors then works at its least cost per task, as far as its most tasks go.
    """
    rates: dict[tuple[int, int], tuple[float, float]] = {}
    for way in ways:
        rate, most = rates.get((way.site, way.group), (math.inf, 0.0))
        rates[way.site, way.group] = min(rate, way.cost / way.tasks), max(most, way.tasks)
    total, left = 0.0, tasks
    for (site, group), (rate, most) in sorted(rates.items(), key=lambda item: item[1]):
        part = min(left, most * size(offers, site, group))
        total += part * rate
        left -= part
    return total if left <= EQUAL * tasks else math.inf


def size(offers: Sequence[SiteOffer], site: int, group: int) -> int:
    """Processors of a group of ways."""
    return offers[site].fresh if group < 0 else offers[site].held[group].processors
