"""Tasks that requests finish over time, if their runtimes are as one belief says. Pure; seconds from now on."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from adaptor.crafting.completion.beliefs import Belief
from adaptor.crafting.shape import TINY

LAST = 0.3
"""Tasks that a slot finishes after it has started its last one: that one, if it takes no longer than most,
beside what was left of the one before (for runtimes spread evenly from 0.25 to 1.75 of their mean)."""
FINE = 1.005
"""Instants are compared on a grid on which they grow by this factor, from a second on."""
_LOG = math.log(FINE)
INSTANTS = [FINE**place for place in range(6_000)]
"""Up to 10^13 seconds."""
NEVER = len(INSTANTS) - 1
"""The place of a completion that never comes."""
_FIRST, _RATIO, _GRID = 30.0, 1.4, 48
_COARSE = [_FIRST * _RATIO**place for place in range(_GRID)]
_LOG_FIRST, _LOG_RATIO = math.log(_FIRST), math.log(_RATIO)


class Member(NamedTuple):
    """A request that runs, waits or may be made."""

    start: float
    """0: it runs, or starts now."""
    length: float
    """Seconds that are left of it."""
    slots: int
    age: float = 0.0
    """Mean seconds for which its present tasks have run; 0: it has none yet."""


class Curve(NamedTuple):
    """A member by one belief: a slot finishes a task every `mean` seconds from `begin` on, up to `most`."""

    begin: float
    end: float
    slots: int
    most: float


class Progress:
    """What members finish by one belief."""

    def __init__(self, belief: Belief, tasks: int, pad: float, pace: float) -> None:
        """
        Args:
            tasks: of the bag, those that run included.
            pad: seconds of a request without tasks.
            pace: the speed of requests made later, in parts of that of the same requests made now.
        """
        self.belief = belief
        self._mean, self._alike, self._longest = belief.mean, belief.alike, belief.longest
        self._tasks, self._pad, self._pace = tasks, pad, pace
        self._later: list[float] = []
        self._speed = 0.0
        self._curves: dict[Member, Curve] = {}

    def curve(self, member: Member) -> Curve:
        """A member as this belief has it."""
        found = self._curves.get(member)
        if found is None:
            found = self._curves[member] = self._curve(*member)
        return found

    def _curve(self, start: float, length: float, slots: int, age: float) -> Curve:
        """Where all tasks are alike they end together; else a slot finishes one every `mean` seconds, and starts
        others until no more than that is left (`learning.RuntimeLearner.even`)."""
        mean, longest = self._mean, self._longest
        begin, end = start, start + length
        if not age:
            begin += self._pad
            length -= self._pad
        if self._alike:
            return Curve(begin - age, end, slots, (length + age) // mean)
        most = (length - mean) / mean + LAST
        if age:
            first = 1.0 + (length - longest) / mean if length > longest else length / longest
            return Curve(begin, end, slots, max(first, most))
        return Curve(begin + mean / 2, end, slots, max(1.0, most) if length >= longest else 0.0)

    def foresee(self, offers: Sequence[Member]) -> None:
        """Keep what follows a request when it ends: the most tasks that one of these offers after the other
        finishes up to each time of a coarse grid, if the holes of now come again."""
        curves = [self.curve(offer) for offer in offers]
        curves = sorted(curve for curve in curves if curve.most > 0)
        mean, alike, pace, later = self._mean, self._alike, self._pace, self._later
        best = 0.0
        for at in _COARSE:
            for begin, end, slots, most in curves:
                if begin >= at:
                    break
                if at < end:
                    done = (at - begin) / mean
                    if alike:
                        done = done // 1
                    done = slots * (done if done < most else most)
                else:
                    done = slots * most + self._after(pace * (at - end))
                if done > best:
                    best = done
            later.append(best)
            self._speed = best / at
            if best >= self._tasks:
                return

    def _after(self, seconds: float) -> float:
        """Tasks that follow within so many seconds; beyond the table the speed stays."""
        if seconds < _FIRST:
            return 0.0
        where = (math.log(seconds) - _LOG_FIRST) / _LOG_RATIO
        place = int(where)
        later = self._later
        if place + 1 >= len(later):
            return self._speed * seconds if later else 0.0
        low = _COARSE[place]
        before = later[place]
        return before + (later[place + 1] - before) * (seconds - low) / (0.4 * low)

    def done(self, curve: Curve, at: float, pace: float | None = None) -> float:
        """Tasks that a member, and the requests made when it ends, have finished at a time.

        Args:
            pace: of those requests, where it is another.
        """
        begin, end, slots, most = curve
        if at >= end:
            return slots * most + self._after((pace or self._pace) * (at - end))
        if at <= begin:
            return 0.0
        done = (at - begin + TINY) / self._mean
        if self._alike:
            done = done // 1
        return slots * (done if done < most else most)
