"""Frequency and length of the nodes' idle periods: learned per site from the periods that were seen.

The hazard (the rate at which idle nodes are taken) is estimated piece by piece of the age of an idle
period, as ends over node-seconds at risk (occurrence over exposure; for one piece this is the estimate
of an exponential law, with fine pieces it tends to that of Kaplan and Meier 1958). Periods that are not
over count for as long as they were seen (censoring), and those that had begun before they were seen
count from then on. Ages matter: the longer a node has been idle, the longer it usually stays so.

Before there is data, each piece has one end at the rate 1 / (age + an hour): a node is expected to
stay idle as long as it has been, and an hour, with a probability of one half. No node is expected to
become idle; an hour without any that did is supposed besides the time that was watched.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise

import msgspec

EDGES = (0.0, *(15.0 * math.sqrt(2.0) ** step for step in range(36)))
"""Ages in seconds at which pieces of the hazard begin; the last piece lasts for ever (from 32 days on)."""
PRIOR_AGE = 3600.0  # seconds, of the suppositions before there is data


class Hazard(msgspec.Struct, frozen=True):
    """Hazard at an instant: plain numbers, by piece."""

    cumulative: tuple[float, ...]
    """The integral of the hazard from age 0 to each of `EDGES`."""
    rates: tuple[float, ...]
    """The hazard in each piece, per second."""

    def longest(self, age: float, probability: float) -> float:
        """The seconds for which a node of this age stays idle with at least this probability.

        A node whose idle period begins in the future, by a clock that was set back, has just become idle.
        """
        age = max(0.0, age)
        level = self._up_to(age) - math.log(probability)
        piece = bisect_right(self.cumulative, level) - 1
        return EDGES[piece] + (level - self.cumulative[piece]) / self.rates[piece] - age

    def survival(self, age: float, seconds: float) -> float:
        """The probability that a node of this age stays idle for `seconds` longer."""
        age = max(0.0, age)
        return math.exp(self._up_to(age) - self._up_to(age + seconds))

    def idle_until(self, age: float, end: float) -> tuple[float, float]:
        """Expected idle nodes and node-seconds if a node becomes idle in each second from now on.

        Returns the nodes that are idle after `end` seconds and have been for at least `age`, and the
        node-seconds above that age until then. With S, the survival from age 0, these are the integrals of
        S(u) and of (end - u) S(u) from `age` to `end`.
        """
        nodes = seconds = 0.0
        bounds = [age, *(edge for edge in EDGES if age < edge < end), end]
        for begin, until in pairwise(bounds if age < end else ()):
            rate = self.rates[bisect_right(EDGES, begin) - 1]
            first, last = self.survival(0.0, begin), self.survival(0.0, until)
            nodes += (first - last) / rate
            seconds += ((end - begin) * first - (end - until) * last) / rate - (first - last) / rate**2
        return nodes, seconds

    def _up_to(self, age: float) -> float:
        piece = bisect_right(EDGES, age) - 1
        return self.cumulative[piece] + self.rates[piece] * (age - EDGES[piece])


class Idleness(msgspec.Struct, frozen=True, kw_only=True):
    """All that an `IdleLearner` knows, to go on from later; by piece."""

    ends: tuple[int, ...] = (0,) * len(EDGES)
    seconds: tuple[float, ...] = (0.0,) * len(EDGES)
    begun: int = 0
    """Idle periods whose beginning was seen."""
    watched: float = 0.0
    """Seconds in which a beginning would have been seen."""

    @property
    def begins(self) -> float:
        """Idle periods of the site that begin in a second."""
        return self.begun / (self.watched + PRIOR_AGE)

    def usual(self, age: float) -> float:
        """Nodes that were idle for at least `age`, one of `EDGES`, on average over the time watched."""
        return sum(self.seconds[bisect_right(EDGES, age) - 1 :]) / (self.watched + PRIOR_AGE)


class IdleLearner:
    """Learns one site's idle periods. Each call adds a part of one that was not added before."""

    def __init__(self, known: Idleness | None = None) -> None:
        known = known or Idleness()
        self._ends, self._seconds = list(known.ends), list(known.seconds)
        self._begun, self._watched = known.begun, known.watched
        self._total = sum(self._ends)
        self._hazard: Hazard | None = None
        self._at = 0

    @property
    def idleness(self) -> Idleness:
        return Idleness(
            ends=tuple(self._ends), seconds=tuple(self._seconds), begun=self._begun, watched=self._watched
        )

    def saw(self, before: float, age: float, *, taken: bool, nodes: int = 1) -> None:
        """Nodes were seen to be idle from the age of `before` seconds to `age`, and then taken or not."""
        before, age = max(0.0, before), max(0.0, age)
        if age <= before and not taken:
            return
        first, last = bisect_right(EDGES, before) - 1, bisect_right(EDGES, age) - 1
        for piece in range(first, last + 1):
            end = EDGES[piece + 1] if piece < last else age
            self._seconds[piece] += nodes * max(0.0, end - max(before, EDGES[piece]))
        if taken:
            self._ends[last] += nodes
            self._total += nodes

    def watched(self, seconds: float, begun: int) -> None:
        """The nodes were watched for some seconds, in which some of them became idle."""
        self._watched += max(0.0, seconds)
        self._begun += begun

    @property
    def hazard(self) -> Hazard:
        """Made again when a hundredth more ends have been seen, so that asking costs nothing."""
        if self._hazard is None or self._total > 1.01 * self._at:
            rates, cumulative = [], [0.0]
            for piece, begin in enumerate(EDGES):
                end = EDGES[piece + 1] if piece + 1 < len(EDGES) else 2 * begin
                supposed = (begin + end) / 2 + PRIOR_AGE
                rates.append((self._ends[piece] + 1) / (self._seconds[piece] + supposed))
                cumulative.append(cumulative[-1] + rates[-1] * (end - begin))
            self._hazard, self._at = Hazard(tuple(cumulative[:-1]), tuple(rates)), self._total
        return self._hazard
