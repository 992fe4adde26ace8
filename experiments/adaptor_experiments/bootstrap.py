"""Intervals of 95 % for what chance leaves open, by drawing the samples again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.forecast.record import wilson

Matrix = npt.NDArray[np.float64]

REPETITIONS = 2000
_ENOUGH = 10  # samples from which on it is asked how much they differ


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
        """Distance of the interval's ends below and above the figure; 0 if nothing is known of it."""
        if not self.known:
            return 0.0, 0.0
        return max(0.0, self.value - self.low), max(0.0, self.high - self.value)

    @property
    def relative_error(self) -> float:
        """Half its width, as a share of the figure."""
        return (self.high - self.low) / (2 * self.value)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """A figure in which there is no chance."""
        return cls(value, value, value)

    def over(self, divisor: float) -> Interval:
        """In another unit."""
        return Interval(self.value / divisor, self.low / divisor, self.high / divisor)

    @property
    def percent(self) -> str:
        """A share in words: `9.0% [8.1%, 10.2%]`."""
        bounds = f" [{self.low:.1%}, {self.high:.1%}]" if self.known else ""
        return f"{self.value:.1%}{bounds}"

    def __str__(self) -> str:
        bounds = f" [{self.low:,.2f}, {self.high:,.2f}]" if self.known else ""
        return f"{self.value:,.2f}{bounds}"


class Drawn:
    """A figure, or one for each cell, with what it is in each repetition of a bootstrap.

    A value has the shape (cells,) or (), the repetitions (cells, repetitions) or (repetitions,).
    """

    def __init__(self, value: Matrix, again: Matrix, samples: int) -> None:
        self.value, self.again, self._samples = value, again, samples

    def through(self, function: Callable[..., Matrix], *others: Drawn) -> Drawn:
        """Result of a function of this and of others of the same repetitions."""
        value = function(self.value, *(other.value for other in others))
        again = function(self.again, *(other.again for other in others))
        return Drawn(value, again, min(each._samples for each in (self, *others)))

    def __truediv__(self, other: Drawn) -> Drawn:
        return self.through(np.divide, other)

    def __sub__(self, other: Drawn) -> Drawn:
        return self.through(np.subtract, other)

    def __getitem__(self, cells: int | npt.NDArray[np.bool_]) -> Drawn:
        return self.through(lambda values: values[cells])

    def mean(self) -> Drawn:
        """Mean of the cells."""
        return self.through(lambda values: values.mean(axis=0))

    def sum(self) -> Drawn:
        return self.through(lambda values: values.sum(axis=0))

    def geometric(self) -> Drawn:
        """The geometric mean of the cells."""
        return self.through(lambda values: np.exp(np.log(values).mean(axis=0)))

    @property
    def interval(self) -> Interval:
        """Interval of a single figure; one sample says nothing of chance."""
        if self._samples == 1:
            return Interval(float(self.value), 0.0, math.inf)
        low, high = np.quantile(self.again, [0.025, 0.975])
        return Interval(float(self.value), float(low), float(high))


def weights(samples: int, seed: int | Sequence[int]) -> Matrix:
    """Weight of each sample in each repetition, (samples, repetitions): values @ weights are the means
    drawn."""
    drawn = np.random.default_rng(seed).multinomial(samples, np.full(samples, 1 / samples), REPETITIONS)
    shares: Matrix = drawn.T / samples
    return shares


def drawn_means(values: Matrix, again: Matrix) -> Drawn:
    """The means of samples, (samples,) or (cells, samples); `again`: the weights of the samples."""
    return Drawn(values.mean(axis=-1), values @ again, values.shape[-1])


def share_interval(samples: Sequence[Sequence[bool]], error: float = 0.05) -> Interval:
    """The share of successes with its interval (Wilson 1927), which misses the true share this often.

    The trials of one sample go together: all may succeed because the sample is an easy one. So they do not
    count as that number of independent trials, but as the number that would make the shares of the samples
    differ as much as they do; as one for each sample where there are few samples, or all are alike. That is
    never too many: no shares differ more than those of samples with one trial each.

    Args:
        samples: one or more, each with one or more trials.
        error: of the interval.
    """
    shares = np.array([np.mean(each) for each in samples])
    share, count = float(shares.mean()), len(samples)
    trials: float = count
    spread = float(shares.var(ddof=1)) if count >= _ENOUGH else 0.0
    if spread:
        trials = min(max(count, count * share * (1 - share) / spread), count * min(map(len, samples)))
    return Interval(share, *wilson(share, trials, error))
