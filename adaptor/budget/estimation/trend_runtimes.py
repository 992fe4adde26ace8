"""Runtimes of a case in which they grow or shrink along the file. Pure."""

from __future__ import annotations

import bisect
import math
import random

from adaptor.budget.estimation.log_normal_tail import beyond
from adaptor.budget.estimation.runtime_trend import LEAST, Trend


class TrendRuntimes:
    """Runtimes that grow or shrink along the file: what it says about a task is where its place is."""

    def __init__(self, trend: Trend, ended: float, started: float, draw: random.Random) -> None:
        """`ended`, `started`: shares of the file; what runs is between them, and what waits beyond."""
        self._trend, self._ended, self._started, self._draw = trend, ended, started, draw
        self._factors = sorted(trend.residuals)
        self._factor = math.fsum(self._factors) / len(self._factors)
        first = started if started < 1 else ended
        levels = [self._level(first + (1 - first) * (step + 0.5) / 8) for step in range(8)]
        self.mean = self._factor * math.fsum(levels) / len(levels)
        """Of a task that waits, seconds."""

    def _level(self, place: float) -> float:
        return max(LEAST, self._trend.level(place))

    def _at(self, progress: float) -> float:
        return self._level(self._started + (1 - self._started) * min(1.0, max(0.0, progress)))

    def one(self, progress: float) -> float:
        """As `Runtimes.one`."""
        return self._at(progress) * self._draw.choice(self._factors)

    def several(self, count: float, progress: float) -> float:
        """As `Runtimes.several`."""
        if count <= 3:
            return math.fsum(self.one(progress) for _ in range(round(count)))
        noise = self._trend.spread * self._draw.gauss(0.0, 1.0) / math.sqrt(count)
        return count * self._at(progress) * self._factor * math.exp(noise)

    def rest(self, ran: float) -> float:
        """As `Runtimes.rest`."""
        level = self._level(self._draw.uniform(self._ended, self._started))
        first = bisect.bisect_right(self._factors, ran / level)
        if first < len(self._factors):
            return max(LEAST, level * self._draw.choice(self._factors[first:]) - ran)
        return max(LEAST, beyond(max(LEAST, ran), math.log(level), self._trend.spread, self._draw) - ran)
