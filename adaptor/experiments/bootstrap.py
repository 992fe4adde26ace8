"""What chance leaves open: 95 % intervals, by drawing the samples again."""

from __future__ import annotations

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

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def weights(samples: int, seed: int) -> Matrix:
    """Of each sample in each repetition, (samples, repetitions): values @ weights are the means drawn."""
    drawn = np.random.default_rng(seed).multinomial(samples, np.full(samples, 1 / samples), REPETITIONS)
    shares: Matrix = drawn.T / samples
    return shares


def interval(value: float, drawn: Matrix) -> Interval:
    """Of a figure, by what it was in each repetition."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(value), float(low), float(high))
