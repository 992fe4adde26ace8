"""Runtimes of the long tasks of a bag beyond a threshold: of a log-normal distribution, and of any. Pure.

The part above a high threshold follows a generalised Pareto distribution, whatever the distribution is
(Pickands 1975; Coles 2001, §4). A few exceedances leave its shape in doubt, so no shape is chosen: all of a
grid are weighed by their likelihood, tasks that still run counting as what they are, censored.

Only tails with an increasing generalised failure rate are on the grid (Lariviere 2006): in those the chance
to end within the next per cent of the time run never falls as a task runs on. The usual distributions of
times have that, up to the power law, which has it constant. It says: where the long tasks take hardly longer
than the threshold, there are no giants either.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist

import msgspec

from adaptor.runtimes.normal import above

_FAR_OUT = 30.0
"""Deviations from the mean up to which a normal survival function is a number that can be divided by."""
_NORMAL = NormalDist()
SHAPES = (-0.45, -0.3, -0.15, 0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Shapes on the grid; below 0: no task is longer than some bound; 0: exponential; above: power laws, all with
a mean."""
_SPREAD = 0.5
"""Deviation of the normal prior of the shape, around the exponential: it decides little except against
extremes."""
_SCALES = tuple(math.exp(step * math.log(6) / 5) for step in range(-5, 6))
"""Around the scale that the mean excess alone would give; all are equally likely beforehand."""
_ZERO = 1e-9
_NEARLY = 1e-4  # a shape that is as good as 0, where the formulas for others still hold in floating point


def beyond(ran: float, middle: float, spread: float, draw: random.Random) -> float:
    """A log-normal runtime, given that it is longer than `ran`: by the inverse of the survival function."""
    z = (math.log(ran) - middle) / spread
    left = above(min(z, _FAR_OUT)) * (1.0 - draw.random())
    found = -_NORMAL.inv_cdf(min(left, 1.0 - 1e-12)) + max(0.0, z - _FAR_OUT)
    return math.exp(min(700.0, middle + spread * max(found, z)))


def survival(ran: float, middle: float, spread: float) -> float:
    """Share of log-normal tasks that run longer than `ran`."""
    return math.exp(max(-60.0, log_survival((math.log(ran) - middle) / spread)))


def log_survival(z: float) -> float:
    if z > 6:
        return -0.5 * z * z - math.log(z) - 0.919
    return math.log(max(1e-300, above(z)))


class Tail(msgspec.Struct, frozen=True):
    """One generalised Pareto distribution; the scale is in seconds."""

    shape: float
    scale: float

    def excess(self, survival: float) -> float:
        """Seconds beyond the threshold that a share of `survival` of the long tasks exceeds."""
        if abs(self.shape) < _ZERO:
            return -self.scale * math.log(survival)
        return self.scale * math.expm1(-self.shape * math.log(survival)) / self.shape

    def further(self, beyond: float) -> float:
        """Factor of the excess of tasks that have already run for `beyond` past the threshold."""
        return max(0.0, 1 + self.shape * beyond / self.scale) if self.scale else 1.0

    def moments(self, survival: float) -> tuple[float, float]:
        """Mean and variance of the excesses that are not above `excess(survival)`."""
        shape = self.shape if abs(self.shape) > _ZERO else _NEARLY
        below = 1 - survival
        if below <= _ZERO:
            return 0.0, 0.0
        first, second = (_power(survival, times * shape) / below for times in (1, 2))
        unit = self.scale / shape
        return unit * (first - 1), unit * unit * max(0.0, second - first * first)


def _power(survival: float, exponent: float) -> float:
    """The integral of v^-exponent from `survival` to 1."""
    if abs(1 - exponent) < _ZERO:
        return -math.log(survival)
    return -math.expm1((1 - exponent) * math.log(survival)) / (1 - exponent)


def likely_tails(
    excesses: Sequence[float], running: Sequence[float], times: float, threshold: float
) -> tuple[list[Tail], list[float]]:
    """Tails and their weights, given the excesses of finished tasks and those of running ones so far.

    Without any excess there is nothing beyond the threshold.

    Args:
        times: tasks that each of the running ones stands for.
    """
    total = math.fsum(excesses) + times * math.fsum(running)
    if not excesses or total <= _ZERO:
        return [Tail(0.0, 0.0)], [1.0]
    around = total / len(excesses)
    grid = [Tail(shape, factor * (1 - shape) * around) for shape in SHAPES for factor in _SCALES]
    tails = [tail for tail in grid if tail.shape * threshold <= tail.scale]
    logs = [
        -((tail.shape / _SPREAD) ** 2) / 2 + _log_likelihood(tail, excesses, running, times) for tail in tails
    ]
    best = max(logs)
    return tails, [math.exp(log - best) for log in logs]


def _log_likelihood(tail: Tail, excesses: Sequence[float], censored: Sequence[float], times: float) -> float:
    shape, scale = tail.shape, tail.scale
    fixed = -len(excesses) * math.log(scale)
    if abs(shape) < _ZERO:
        return fixed - (math.fsum(excesses) + times * math.fsum(censored)) / scale
    factor = shape / scale
    if 1 + factor * max(*excesses, *censored, 0.0) <= 0:
        return -math.inf
    of_excesses = sum(math.log1p(factor * excess) for excess in excesses)
    of_censored = times * sum(math.log1p(factor * excess) for excess in censored)
    return fixed - (1 + 1 / shape) * of_excesses - of_censored / shape
