"""The runtimes up to a threshold, by the Bayesian bootstrap for censored data (Rubin 1981; Lo 1993).

The cumulative hazard grows at each finished runtime by a step that is exponential with the mean
1 / (tasks known to take longer + 1). Tasks that still run are among those for as long as they have run.
The one more is the task that has not been seen: beyond n runtimes lies a share of 1 / (n + 1) (Hill 1968).
A runtime stands for all between it and the one before.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import random
from collections.abc import Iterator, Sequence

import msgspec

_GROUPS = 24
"""Runtimes are looked at in so many groups at most, of neighbours."""
_LEAST = 1e-12


class Steps(msgspec.Struct, frozen=True):
    """Of a group; the sum of its steps of the hazard has a gamma distribution."""

    runtime: float
    """Mean, seconds."""
    square: float
    """Mean of the squares."""
    hazard: float
    """Mean of the sum."""
    shape: float


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that run, and have not run up to the threshold yet; seconds."""

    count: int = 0
    chance: float = 0.0
    """To run beyond it, in the mean."""
    until: float = 0.0
    """What is left until the threshold for those that run beyond it, in the mean."""
    rest: float = 0.0
    """What is left of one of the others, in the mean."""
    variance: float = 0.0
    """Of that, seconds²."""


class Body(msgspec.Struct, frozen=True):
    steps: list[Steps]
    beyond: float
    """The share of the tasks that is longer than the threshold, in the mean."""
    crossing: Crossing

    def draw(self, chance: random.Random) -> tuple[float, float, float]:
        """Of one possible distribution: the share beyond the threshold; of the others mean and variance."""
        left, first, second = 1.0, 0.0, 0.0
        for each in self.steps:
            share = left * -math.expm1(-each.hazard * chance.gammavariate(each.shape, 1 / each.shape))
            left -= share
            first += share * each.runtime
            second += share * each.square
        below = max(1 - left, _LEAST)
        mean = first / below
        return left, mean, max(0.0, second / below - mean * mean)


def body_of(finished: Sequence[float], running: Sequence[float], size: int, every: int = 1) -> Body:
    """Of the `size` shortest runtimes; `finished` and `running` (seconds so far) are in order.

    One in `every` finished task is there.
    """
    values = list(_between(finished, size))
    alike = running[every // 2 :: every]
    longer = [_longer(finished, alike, place) for place in range(size)]
    shares = list(itertools.accumulate((each / (each + 1) for each in longer), operator.mul, initial=1.0))
    under = running[: bisect.bisect_right(running, finished[size - 1])]
    return Body(_grouped(values, longer), shares[-1], _crossing(under, finished[:size], values, shares))


def _between(finished: Sequence[float], size: int) -> Iterator[float]:
    """Before the first runtime there may be others, as far as its neighbours are from each other."""
    near = finished[: min(len(finished), 4)]
    before = max(0.0, near[0] - (near[-1] - near[0]) / max(1, len(near) - 1))
    for runtime in finished[:size]:
        yield (before + runtime) / 2
        before = runtime


def _longer(finished: Sequence[float], running: Sequence[float], place: int) -> int:
    return len(finished) - place + len(running) - bisect.bisect_left(running, finished[place])


def _grouped(values: Sequence[float], longer: Sequence[int]) -> list[Steps]:
    found = []
    size = -(-len(values) // _GROUPS)
    for first in range(0, len(values), size):
        some, risks = values[first : first + size], longer[first : first + size]
        hazard = sum(1 / each for each in risks)
        shape = hazard * hazard / sum(1 / (each * each) for each in risks)
        square = sum(each * each for each in some) / len(some)
        found.append(Steps(sum(some) / len(some), square, hazard, shape))
    return found


def _crossing(
    running: Sequence[float], runtimes: Sequence[float], values: Sequence[float], shares: Sequence[float]
) -> Crossing:
    if not running:
        return Crossing()
    sums = _sums_from(values, shares)
    cross = until = stay = rest = variance = 0.0
    for ran in running:
        place = bisect.bisect_right(runtimes, ran)
        chance = shares[-1] / shares[place]
        cross += chance
        until += chance * (runtimes[-1] - ran)
        mass, first, second = sums[place]
        if mass > _LEAST:
            stay += 1 - chance
            rest += (1 - chance) * max(0.0, first / mass - ran)
            variance += (1 - chance) * max(0.0, second / mass - (first / mass) ** 2)
    return Crossing(
        count=len(running),
        chance=cross / len(running),
        until=until / cross,
        rest=rest / stay if stay else 0.0,
        variance=variance / stay if stay else 0.0,
    )


def _sums_from(values: Sequence[float], shares: Sequence[float]) -> list[tuple[float, float, float]]:
    """From each place to the end: the share, and the sums of share · runtime and share · runtime²."""
    sums = [(0.0, 0.0, 0.0)]
    for place in range(len(values) - 1, -1, -1):
        mass, first, second = sums[-1]
        share, value = shares[place] - shares[place + 1], values[place]
        sums.append((mass + share, first + share * value, second + share * value * value))
    return sums[::-1]
