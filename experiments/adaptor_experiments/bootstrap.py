"""What chance leaves open: 95 % intervals, by drawing the samples again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

REPETITIONS = 2000


class Interval(msgspec.Struct, frozen=True):
    """A figure with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether anything is known of chance."""
        return math.isfinite(self.high)

    @property
    def bars(self) -> tuple[float, float]:
        """How far it reaches below and above the figure; 0 where nothing is known of it."""
        if not self.known:
            return 0.0, 0.0
        return max(0.0, self.value - self.low), max(0.0, self.high - self.value)

    def over(self, divisor: float) -> Interval:
        """In another unit."""
        return Interval(self.value / divisor, self.low / divisor, self.high / divisor)

    @property
    def percent(self) -> str:
        """Of a share: `9.0% [8.1%, 10.2%]`."""
        bounds = f" [{self.low:.1%}, {self.high:.1%}]" if self.known else ""
        return f"{self.value:.1%}{bounds}"

    def __str__(self) -> str:
        bounds = f" [{self.low:,.2f}, {self.high:,.2f}]" if self.known else ""
        return f"{self.value:,.2f}{bounds}"


def weights(samples: int, seed: int | Sequence[int]) -> Matrix:
    """Of each sample in each repetition, (samples, repetitions): values @ weights are the means drawn."""
    drawn = np.random.default_rng(seed).multinomial(samples, np.full(samples, 1 / samples), REPETITIONS)
    shares: Matrix = drawn.T / samples
    return shares


def interval(value: float, drawn: Matrix, samples: int) -> Interval:
    """Of a figure, by what it was in each repetition; one sample says nothing of chance."""
    if samples == 1:
        return Interval(float(value), 0.0, math.inf)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(value), float(low), float(high))
