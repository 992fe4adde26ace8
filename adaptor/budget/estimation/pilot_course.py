"""How a rest of a bag runs on the pilots in the system, and on further ones as it needs them. Pure."""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Sequence

import msgspec

from adaptor.budget.estimation.bag_knowledge import STARTUPS_PER_UNIT, BagKnowledge
from adaptor.budget.estimation.estimate import Estimate
from adaptor.budget.estimation.remaining_work import Rest

_FLOWS = 8
"""Guesses of what a slot loses at the end of its pilot."""


class Case(msgspec.Struct, frozen=True):
    """What one possible rest comes to."""

    cost: float
    """Credits still to be charged."""
    end: float
    """Epoch seconds of the last result."""


class Residuals:
    """How long tasks that are found running at a random instant still run: the residual life of renewal.

    P(residual <= x) = E[min(T, x)] / E[T]. At a random instant long tasks are found more often.
    """

    def __init__(self, runtimes: Sequence[float]) -> None:
        self._runtimes = sorted(runtimes)
        self._below = [0.0, *itertools.accumulate(self._runtimes)]
        count, previous = len(self._runtimes), 0.0
        self._masses = [0.0]
        """Up to each runtime: the integral of the share of tasks that take longer, times their number."""
        for place, runtime in enumerate(self._runtimes):
            self._masses.append(self._masses[-1] + (count - place) * (runtime - previous))
            previous = runtime
        squares = sum(each * each for each in self._runtimes)
        self.mean = squares / (2 * self._below[-1]) if self._below[-1] else 0.0
        self.task = self._below[-1] / count
        """Seconds of a task, mean."""

    def longest(self, tasks: int, draw: random.Random) -> float:
        """Seconds until the last of so many running tasks has ended, drawn at random."""
        if not self._masses[-1] or not tasks:
            return 0.0
        mass = draw.random() ** (1 / tasks) * self._masses[-1]
        place = min(len(self._runtimes), bisect.bisect_left(self._masses, mass))
        before = self._runtimes[place - 2] if place > 1 else 0.0
        width = self._masses[place] - self._masses[place - 1]
        part = (mass - self._masses[place - 1]) / width if width else 0.0
        return before + part * (self._runtimes[place - 1] - before)


class _Flow:
    """Work that flows through the slots of the pilots in the system."""

    def __init__(self, known: BagKnowledge, lost: float) -> None:
        """`lost`: seconds before its end from which a slot works no more."""
        self._now = known.now
        changes: list[tuple[float, int]] = []
        for each in known.pilots:
            begin = max(known.now, each.start + known.startup / 2)
            stop = each.end - lost
            if stop > begin:
                changes += [(begin, each.slots), (stop, -each.slots)]
        self._times, self._done = [known.now], [0.0]
        slots = 0
        for at, change in sorted(changes):
            self._done.append(self._done[-1] + slots * (at - self._times[-1]))
            self._times.append(at)
            slots += change

    @property
    def most(self) -> float:
        """Seconds of slots that they have time for."""
        return self._done[-1]

    def when(self, work: float) -> float:
        """The instant by which so much work is done, of which they have time for."""
        place = bisect.bisect_left(self._done, work)
        if place == 0:
            return self._now
        part = self._done[place] - self._done[place - 1]
        share = (work - self._done[place - 1]) / part if part else 1.0
        return self._times[place - 1] + share * (self._times[place] - self._times[place - 1])


class PilotCourse:
    """What the pilots in the system can do, and what it costs to let them."""

    def __init__(self, known: BagKnowledge, residuals: Residuals, longest: float, work: Estimate) -> None:
        self._known, self._residuals, self._now = known, residuals, known.now
        self._flows = [_Flow(known, (step + 0.5) / _FLOWS * longest) for step in range(_FLOWS)]
        """At its end a slot starts no task as long as the longest so far: it may lose as much."""
        self._soon = max(0.0, work.low - self._flows[0].most)
        """Work that further pilots are certainly needed for."""
        self._longest = longest
        self._last = max((each.end for each in known.pilots), default=self._now)

    @property
    def paid(self) -> float:
        """Seconds of slots that are charged already and still to come."""
        return sum(
            each.slots * max(0.0, min(each.paid_until, each.end) - self._now)
            for each in self._known.pilots
            if each.running
        )

    def has_time_for(self, rest: Rest) -> bool:
        """Whether they can do the work without another pilot."""
        return rest.work <= self._flows[_FLOWS // 2].most

    def of(self, rest: Rest, draw: random.Random) -> Case:
        flow = draw.choice(self._flows)
        left = rest.work - flow.most
        rounds = (2 * draw.random() - 1) * self._residuals.task  # slots may end together
        empty = max(self._now, flow.when(min(rest.work, flow.most)) + rounds)
        cost, end = self._held(rest, empty, draw)
        if left > 0:
            more, later = self._further(left, self._asked_at(rest, draw), draw)
            cost, end = cost + more, max(end, later)
        return Case(cost, end)

    def _held(self, rest: Rest, empty: float, draw: random.Random) -> tuple[float, float]:
        """Credits for the pilots from now on, and when the last of their tasks ends.

        A slot ends its last task half a task before or after the work is done by its mean; a pilot is held
        for the last of its slots. The longest task may begin at any time.
        """
        cost, end = 0.0, self._now
        if not self._known.pilots:
            return cost, end
        late = self._now + draw.random() * (empty - self._now) + rest.longest if rest.longest else 0.0
        at_work = [each for each in self._known.pilots if max(self._now, each.start) <= empty]
        holder = draw.choices(at_work, [each.slots for each in at_work])[0] if at_work and late else None
        for each in at_work:
            tail = self._residuals.longest(each.slots, draw) - self._residuals.mean
            stop = max(self._now, empty + tail)
            if each is holder:
                stop = max(stop, late)
            if stop > each.end and each.end >= self._last:  # what it has no time for begins anew
                late = max(late, each.end + self._known.startup + self._residuals.task)
            stop = min(stop, each.end)
            units = max(0, math.ceil((stop - each.paid_until) / each.unit - 1e-9))
            cost += each.slots * each.rate * each.unit * units
            end = max(end, stop)
        return cost, max(end, late)

    def _asked_at(self, rest: Rest, draw: random.Random) -> float:
        """When further pilots are asked for.

        At once for what is certainly needed; for what turns out to be needed as it does, at the latest when
        the last pilot ends; for what is only lost at the ends of pilots when the last one starts no more.
        """
        ahead = max(0.0, self._last - self._now)
        beyond = rest.work - self._flows[0].most
        if beyond > 0:
            return self._now + draw.random() * (1 - min(1.0, self._soon / beyond)) * ahead
        return self._now + max(0.0, ahead - draw.random() * self._longest)

    def _further(self, work: float, asked: float, draw: random.Random) -> tuple[float, float]:
        """Credits for the work that the pilots have no time for, and when it ends."""
        known, residuals = self._known, self._residuals
        usual = max(known.unit, STARTUPS_PER_UNIT * known.startup)
        useful = max(usual - known.startup - residuals.mean, usual / 2)
        fewest = math.ceil(work / useful)
        tasks = max(1, math.ceil(work / max(residuals.task, 1e-9)))
        slots = min(tasks, fewest + int(draw.random() * (1 + min(tasks, len(known.pilots)))))
        slots = max(1, slots if known.most is None else min(slots, known.most))
        each = work / slots + known.startup * draw.random() + residuals.mean * draw.random()
        cost = slots * known.rate * known.unit * math.ceil(each / known.unit)
        tail = residuals.longest(min(slots, tasks), draw) - residuals.mean
        return cost, asked + known.startup + max(0.0, work / slots + tail)
