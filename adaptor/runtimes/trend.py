"""Trends of runtimes along the file, and their possible course. Pure.

Files are often sorted by something that runtimes go with: sizes, steps, numbers of atoms. The logarithm of
the runtime is fitted along the file, either by the place itself or by the place on the scale on which a
sorted log-normal sample is a straight line, which is steep at both ends.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Sequence
from statistics import NormalDist

import msgspec

from adaptor.runtimes.known import ENOUGH
from adaptor.runtimes.tail import beyond

LEAST = 1e-3  # seconds: no task is shorter
_PRIOR = 0.1
"""Assumed share of files whose order goes with the runtimes, before any task has finished."""
_UNSURE = 0.3  # deviation of the logarithm of how much steeper or flatter a trend goes on
_IN_ORDER = 0.97
"""Share of the tasks up to a place of the file that have finished, so that these are taken to be in order."""
_NORMAL = NormalDist()


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """Trend of runtimes along the file, in one case."""

    slope: float
    """Slope of the logarithm of the runtime, by the scale."""
    intercept: float
    steep: bool
    """Whether the scale is the steep one."""
    residuals: tuple[float, ...]
    """Runtimes of finished tasks as factors of the level at their places."""
    spread: float
    """The deviation of the logarithms of these."""
    until: float
    """The place, as a share of the file, from which on the level stays."""

    def level(self, place: float) -> float:
        """Seconds; `place`: as a share of the file."""
        at = _scaled(min(place, self.until), self.steep)
        return math.exp(min(100.0, max(-100.0, self.intercept + self.slope * at)))


class _Fit(msgspec.Struct, frozen=True, kw_only=True):
    """One line through what has finished."""

    steep: bool
    slope: float
    error: float
    level: float
    """The logarithm of the runtime at the last place that was reached, as the last quarter says."""
    reached: float
    left: float
    """The mean of the squared residuals."""
    residuals: tuple[float, ...]
    """Logarithms, of the later half: the older ones may have another slope."""


class Trends(msgspec.Struct, frozen=True):
    """Possible trends."""

    chance: float = 0.0
    """Chance that there is a trend."""
    fits: tuple[_Fit, ...] = ()
    chances: tuple[float, ...] = ()

    def drawn(self, draw: random.Random) -> Trend | None:
        """A trend drawn by its chance; None: there is none.

        Runtimes may also grow because a machine becomes busier, and then stay. So a trend goes on as far
        again as it was seen in half of the cases, and n times as far in one of n + 1 (Gott 1993).
        """
        if not self.fits or draw.random() >= self.chance:
            return None
        fit = draw.choices(self.fits, self.chances)[0]
        slope = draw.gauss(fit.slope, fit.error) * math.exp(_UNSURE * draw.gauss(0.0, 1.0))
        return Trend(
            slope=slope,
            intercept=fit.level - slope * _scaled(fit.reached, fit.steep),
            steep=fit.steep,
            residuals=tuple(math.exp(residual) for residual in fit.residuals),
            spread=max(
                0.03, math.sqrt(sum(residual * residual for residual in fit.residuals) / len(fit.residuals))
            ),
            until=fit.reached / (1.0 - draw.random()),
        )


def trends(places: Sequence[int], runtimes: Sequence[float], tasks: int) -> Trends:
    """Possible trends by linear regression; the chance of one by the Bayesian information criterion."""
    if len(places) < ENOUGH or len(places) != len(runtimes) or tasks < 2:
        return Trends()
    points = sorted(zip(places, (math.log(max(LEAST, runtime)) for runtime in runtimes), strict=True))
    fits = _fits(points, tasks)
    if fits and fits[0].slope < 0:
        # Of any bag the short tasks end first: those that have overtaken others say nothing.
        # The beginning of the file, of which nearly all have finished; if it rises, it goes on otherwise.
        last = 0
        step = max(1, min(after[0] - before[0] for before, after in itertools.pairwise(points)))
        for rank, (place, _) in enumerate(points, 1):
            if rank * step >= _IN_ORDER * (place + 1):
                last = rank
        fits = [fit for fit in _fits(points[:last], tasks) if fit.slope < 0]
    if not fits:
        return Trends()
    count = len(points)
    best = min(fit.left for fit in fits)
    weight = min(10.0, count / 2)
    chances = tuple(0.2 + (best / fit.left) ** weight for fit in fits)
    return Trends(sum(_chance(fit, count) for fit in fits) / len(fits), tuple(fits), chances)


def _chance(fit: _Fit, count: int) -> float:
    t = min(50.0, abs(fit.slope) / fit.error)
    odds = _PRIOR / (1 - _PRIOR) * math.exp(min(50.0, 0.5 * t * t - 0.5 * math.log(count)))
    # A trend of a tenth along the whole file is none that anybody would notice.
    if abs(fit.slope) * (_scaled(0.9, fit.steep) - _scaled(0.1, fit.steep)) < 0.1:
        odds = min(odds, 0.1)
    return odds / (1 + odds)


def _fits(points: Sequence[tuple[int, float]], tasks: int) -> list[_Fit]:
    found = [_fit(points, tasks, steep) for steep in (False, True)] if len(points) >= ENOUGH else []
    return [each for each in found if each is not None]


def _fit(points: Sequence[tuple[int, float]], tasks: int, steep: bool) -> _Fit | None:
    count = len(points)
    at = [_scaled((place + 0.5) / tasks, steep) for place, _ in points]
    centre, mean = sum(at) / count, sum(y for _, y in points) / count
    wide = sum((place - centre) ** 2 for place in at)
    if not wide:
        return None
    slope = sum((x - centre) * (y - mean) for x, (_, y) in zip(at, points, strict=True)) / wide
    off = [y - mean - slope * (x - centre) for x, (_, y) in zip(at, points, strict=True)]
    left = max(1e-6, sum(residual * residual for residual in off) / max(1, count - 2))
    late = off[-max(2, count // 4) :]
    shift = sum(late) / len(late)
    return _Fit(
        steep=steep,
        slope=slope,
        error=math.sqrt(left / wide),
        level=mean + slope * (at[-1] - centre) + shift,
        reached=(points[-1][0] + 0.5) / tasks,
        left=left,
        residuals=tuple(residual - shift for residual in off[count // 2 :]),
    )


def _scaled(place: float, steep: bool) -> float:
    return _NORMAL.inv_cdf(min(1 - 1e-6, max(1e-6, place))) if steep else place


class TrendRuntimes:
    """Runtimes that grow or shrink along the file: what it says about a task is where its place is."""

    def __init__(self, trend: Trend, ended: float, started: float, draw: random.Random) -> None:
        """`ended`, `started`: shares of the file; what runs is between them, and what waits beyond."""
        self._trend, self._ended, self._started, self._draw = trend, ended, started, draw
        self._factors = sorted(trend.residuals)
        self._factor = math.fsum(self._factors) / len(self._factors)
        first = started if started < 1 else ended
        levels = [self._level(first + (1 - first) * (step + 0.5) / 8) for step in range(8)]
        self.mean = self._factor * math.fsum(levels) / len(levels)  # of a task that waits, seconds

    def _level(self, place: float) -> float:
        return max(LEAST, self._trend.level(place))

    def _at(self, progress: float) -> float:
        return self._level(self._started + (1 - self._started) * min(1.0, max(0.0, progress)))

    def one(self, progress: float) -> float:
        """Runtime of a waiting task at this place of the file, drawn."""
        return self._at(progress) * self._draw.choice(self._factors)

    def several(self, count: float, progress: float) -> float:
        """Runtime of a number of waiting tasks from this place of the file on, drawn."""
        if count <= 3:
            return math.fsum(self.one(progress) for _ in range(round(count)))
        noise = self._trend.spread * self._draw.gauss(0.0, 1.0) / math.sqrt(count)
        return count * self._at(progress) * self._factor * math.exp(noise)

    def rest(self, ran: float) -> float:
        """Time left of a task that has run for `ran` seconds, drawn by its likely place in the file."""
        level = self._level(self._draw.uniform(self._ended, self._started))
        first = bisect.bisect_right(self._factors, ran / level)
        if first < len(self._factors):
            return max(LEAST, level * self._draw.choice(self._factors[first:]) - ran)
        return max(LEAST, beyond(max(LEAST, ran), math.log(level), self._trend.spread, self._draw) - ran)
