"""Ways to hold a processor, and the cheapest of them that do the tasks of a bag. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer

MOST_LENGTHS = 8
"""Lengths of whole units just below the deadline that are considered, besides halves of it."""


CONFIDENCE = 0.6
"""With which all tasks that run at the last start have ended by the deadline: a little better than even."""


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


def all_ways(offers: Sequence[SiteOffer], deadline: float, confidence: float = CONFIDENCE) -> list[Way]:
    """All that are of any use until the deadline, in seconds from now."""
    found: list[Way] = []
    for site, offer in enumerate(offers):
        tail = offer.task.last_end(offer.processors, confidence ** (1 / len(offers)))
        for group, held in [(-1, HeldSlots(offer.fresh, offer.wait)), *enumerate(offer.held)]:
            if held.processors:
                found.extend(_of_group(offer, site, group, held, deadline, tail))
    return [way for way in found if way.tasks > 0]


def _of_group(
    offer: SiteOffer, site: int, group: int, held: HeldSlots, deadline: float, tail: float
) -> Iterator[Way]:
    task, fresh = offer.task, group < 0
    startup = offer.wait + offer.startup if fresh else 0.0
    for end in _unit_ends(offer, held, deadline):
        tasks = task.completed(end - startup, fresh)
        yield Way(site, group, end, tasks, offer.cost(end - held.paid))
    # Until the deadline. A pilot leaves when no task is left for it, and its last one runs to its end.
    tasks = task.started(deadline - tail - startup, fresh)
    seconds = min(deadline, startup + tasks * task.mean)
    yield Way(site, group, seconds, tasks, offer.cost(seconds - held.paid))


def _unit_ends(offer: SiteOffer, held: HeldSlots, deadline: float) -> list[float]:
    """The last instants before the deadline at which another unit would begin, where that matters."""
    unit = offer.charging_unit
    if offer.divisible:
        return []
    most = math.ceil((deadline - held.paid) / unit)
    last = range(max(0, most - MOST_LENGTHS), most)
    halves = (most >> times for times in range(1, most.bit_length())) if most > 0 else ()
    ends = [held.paid + units * unit for units in sorted({*last, *halves})]
    return [end for end in ends if 0 < end < deadline]


EQUAL = 1e-9  # relative: what differs by less is equal
ROUNDS = 200  # of exchanges of one or two processors; each makes the allocation cheaper


def least_cost(ways: Sequence[Way], offers: Sequence[SiteOffer], tasks: float) -> list[float] | None:
    """How many processors to hold in each way so that the tasks are done at the least cost; None: no way.

    Ricciardi & Hwang, §3, choice 1: the least C_prod, in credits. Of equal costs that with fewer processors
    still to be bought.

    It is a knapsack of alike items: the ways of a group of processors on their convex hull, by credits per
    further task, are the best but for the last processor. Exchanges of one or two processors mend that one.
    Processors are paid for as long as the ways say: of those that are charged by the second, a part of one
    may be held, which is one that is held for a part of the time.
    """
    if capacity(ways, offers) < tasks:
        return None
    return _Allocated(ways, offers, tasks).found()


class _Step(msgspec.Struct, frozen=True):
    """One processor of a group goes from one way to another. -1: it is not held."""

    group: tuple[int, int]
    before: int
    after: int
    tasks: float
    cost: float


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

    def found(self) -> list[float]:
        self._fill()
        self._finish()
        for _ in range(ROUNDS):
            if not self._exchange():
                break
        self._leave_parts()
        return self._counts

    def _fill(self) -> None:
        """Steps along the hulls, cheapest first, as far as whole processors are all needed."""
        steps = [step for group in self._groups for step in self._hull(group)]
        for step in sorted(steps, key=lambda step: (step.cost / step.tasks, step.group[1] < 0)):
            number = min(self._held(step.group, step.before), self._left / step.tasks)
            whole = self._parts[step.after]
            self._take(step, number if whole else math.floor(number + EQUAL))
            if self._left > self._slack and self._held(step.group, step.before) >= 1:
                return
            if self._left <= self._slack:
                return

    def _hull(self, group: tuple[int, int]) -> Iterator[_Step]:
        """From the way of the least credits per task on, each next at the least credits per further task."""
        at = -1
        while True:
            steps = [
                step for after in self._groups[group] if (step := self._step(group, at, after)).tasks > 0
            ]
            if not steps:
                return
            yield (best := min(steps, key=lambda step: (step.cost / step.tasks, -step.tasks)))
            at = best.after

    def _finish(self) -> None:
        """The cheapest step that does the rest; while none does it all, the one of the least rate."""
        while self._left > self._slack:
            steps = [step for step in self._steps() if step.tasks > 0]
            enough = [
                step for step in steps if self._parts[step.after] or step.tasks >= self._left - self._slack
            ]
            best = min(enough, key=self._rest, default=None)
            if best is None:
                best = min(steps, key=lambda step: step.cost / step.tasks)
            parts = self._held(best.group, best.before)
            self._take(best, min(parts, 1.0, self._left / best.tasks) if self._parts[best.after] else 1.0)

    def _rest(self, step: _Step) -> tuple[float, bool]:
        part = min(1.0, self._left / step.tasks) if self._parts[step.after] else 1.0
        scale = self._left / min(self._left, part * step.tasks)
        return step.cost * part * scale, step.before < 0

    def _exchange(self) -> bool:
        """One processor does less and at most one other does more, so that all is done for less."""
        steps = [step for step in self._steps() if self._held(step.group, step.before) >= 1]
        more = sorted((step for step in steps if step.tasks > 0), key=lambda step: step.tasks)
        cheapest: list[_Step] = []  # of those that do as much or more
        for step in reversed(more):
            cheapest.append(step if not cheapest or step.cost < cheapest[-1].cost else cheapest[-1])
        cheapest.reverse()
        amounts = [step.tasks for step in more]
        best: tuple[_Step, ...] = ()
        saved = 1e-9 * max((way.cost for way in self._ways), default=0.0)
        for less in steps:
            if less.cost >= -saved:
                continue
            missing = self._left - less.tasks
            if missing <= self._slack:
                best, saved = (less,), -less.cost
                continue
            place = bisect_left(amounts, missing - self._slack)
            if (
                place < len(more)
                and self._both(less, add := cheapest[place])
                and less.cost + add.cost < -saved
            ):
                best, saved = (less, add), -less.cost - add.cost
        for step in best:
            self._take(step, 1.0)
        return bool(best)

    def _both(self, one: _Step, other: _Step) -> bool:
        shared = (one.group, one.before) == (other.group, other.before)
        return not shared or self._held(one.group, one.before) >= 2

    def _leave_parts(self) -> None:
        """What is charged by the second is held no longer than there is work, the dearest first."""
        dearest = sorted(range(len(self._ways)), key=lambda at: -self._ways[at].cost / self._ways[at].tasks)
        for place in dearest:
            way = self._ways[place]
            if self._left < 0 and self._parts[place] and way.cost > 0:
                self._take(
                    self._step((way.site, way.group), place, -1),
                    min(self._counts[place], -self._left / way.tasks),
                )

    def _steps(self) -> Iterator[_Step]:
        for group, places in self._groups.items():
            for before in (-1, *places):
                if self._held(group, before) > EQUAL:
                    for after in (-1, *places):
                        if after != before:
                            yield self._step(group, before, after)

    def _step(self, group: tuple[int, int], before: int, after: int) -> _Step:
        tasks, cost = self._of(after)
        tasks_before, cost_before = self._of(before)
        return _Step(group, before, after, tasks - tasks_before, cost - cost_before)

    def _of(self, place: int) -> tuple[float, float]:
        return (0.0, 0.0) if place < 0 else (self._ways[place].tasks, self._ways[place].cost)

    def _held(self, group: tuple[int, int], place: int) -> float:
        return self._free[group] if place < 0 else self._counts[place]

    def _take(self, step: _Step, number: float) -> None:
        for place, change in ((step.before, -number), (step.after, number)):
            if place < 0:
                self._free[step.group] += change
            else:
                self._counts[place] += change
        self._left -= number * step.tasks


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
