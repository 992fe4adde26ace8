"""Lists of runtimes that have all the statistics which the papers publish of a bag, in several shapes.

The papers publish no list. What they say of one leaves most of it open: the image rendering has 256 runtimes,
and four numbers are known of them; the software testing has 1,480, and three. So one plain shape is chosen
for each, by a rule that no result had a part in, and others with the same statistics are shown next to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]

IMAGE_TASKS, IMAGE_MEAN, IMAGE_DEVIATION = 256, 220.0, 125.0  # 2011, §4: seconds
IMAGE_SHORTEST, IMAGE_LONGEST = 25.0, 565.0
"""2008, §3: some tasks take about 25 s, and the amplitude is about 9 minutes."""
TESTING_TASKS, TESTING_MEDIAN, TESTING_MEAN = 1480, 30.0, 60.0
"""2011, §4: half of the tasks are below 30 s, and the average is 1 minute."""
TESTING_LONG = 900.0  # 2011, §4: few tasks are longer

_HALVINGS = 50


def image_list(shortest: int = 1, longest: int = 1) -> Seconds:
    """The image rendering: the shortest and the longest runtime, each several times, and between them one
    smooth hump.

    The hump is a Kumaraswamy distribution (1980), on the range as the beta distribution, whose quantiles are
    a plain formula. Its two shapes are what the mean and the deviation leave.
    """
    between = IMAGE_TASKS - shortest - longest
    ends = np.array([IMAGE_SHORTEST] * shortest + [IMAGE_LONGEST] * longest)
    mean = (IMAGE_TASKS * IMAGE_MEAN - ends.sum()) / between
    squares = IMAGE_TASKS * (IMAGE_DEVIATION**2 + IMAGE_MEAN**2) - (ends**2).sum()
    width = IMAGE_LONGEST - IMAGE_SHORTEST
    hump = _hump(between, (mean - IMAGE_SHORTEST) / width, math.sqrt(squares / between - mean**2) / width)
    return np.sort(np.concatenate([ends, IMAGE_SHORTEST + width * hump]))


def _hump(count: int, mean: float, deviation: float) -> Seconds:
    """Quantiles of a Kumaraswamy distribution on [0, 1], which have this mean and deviation."""

    def with_first(first: float) -> Seconds:
        second = _where(lambda tried: mean - float(_quantiles(count, first, tried).mean()), 0.05, 50.0)
        return _quantiles(count, first, second)

    return with_first(_where(lambda tried: deviation - float(with_first(tried).std()), 0.2, 20.0))


def _quantiles(count: int, first: float, second: float) -> Seconds:
    found: Seconds = (1 - (1 - _places(count)) ** (1 / second)) ** (1 / first)
    return found


def _places(count: int) -> Seconds:
    """The shares of a distribution at which its quantiles stand for it."""
    return (np.arange(count) + 0.5) / count


def log_normal(mean: float = TESTING_MEAN) -> Seconds:
    """The software testing as log-normal quantiles, half of them below 30 s.

    The deviation of the logarithms makes the mean.
    """
    normal = np.array([NormalDist().inv_cdf(place) for place in _places(TESTING_TASKS)])

    def with_sigma(sigma: float) -> Seconds:
        found: Seconds = TESTING_MEDIAN * np.exp(sigma * normal)
        return found

    return with_sigma(_where(lambda sigma: float(with_sigma(sigma).mean()) - mean, 0.1, 3.0))


def power_law() -> Seconds:
    """The software testing as generalised Pareto quantiles with that median; the shape makes the mean."""
    left = 1 - _places(TESTING_TASKS)

    def with_shape(shape: float) -> Seconds:
        found: Seconds = TESTING_MEDIAN * (left**-shape - 1) / (2.0**shape - 1)
        return found

    return with_shape(_where(lambda shape: float(with_shape(shape).mean()) - TESTING_MEAN, 0.05, 0.95))


def dozen_long() -> Seconds:
    """The software testing in three parts, of which the middle makes the mean.

    Half of the tasks lie evenly from 2 to 30 s, a dozen from 15 to 30 minutes, the others exponentially.
    """
    half, dozen = TESTING_TASKS // 2, 12
    below = np.linspace(2.0, TESTING_MEDIAN, half, endpoint=False)
    longest = np.linspace(TESTING_LONG, 2 * TESTING_LONG, dozen + 1)[1:]
    above = -np.log(1 - _places(half - dozen))
    total = TESTING_TASKS * TESTING_MEAN - below.sum() - longest.sum() - len(above) * TESTING_MEDIAN
    return np.concatenate([below, TESTING_MEDIAN + above * total / above.sum(), longest])


def _where(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that grows from below 0 to above it is 0."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) < 0 else (low, middle)
    return (low + high) / 2
