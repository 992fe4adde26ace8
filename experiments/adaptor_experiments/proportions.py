"""How sure a share of successes is that was counted in samples of several trials each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptor.forecast.record import wilson
from adaptor_experiments.bootstrap import Interval

_ENOUGH = 10
"""Samples from which on it is asked how much they differ."""


def share_interval(samples: Sequence[Sequence[bool]], error: float = 0.05) -> Interval:
    """The share of successes with its interval (Wilson 1927), which misses the true share this often.

    The trials of one sample go together: all may succeed because the sample is an easy one. So they do not
    count as so many independent trials, but as so many as would make the shares of the samples differ as much
    as they do; as one for each sample where there are few samples, or all are alike. That is never too many:
    no shares differ more than those of samples with one trial each.

    Args:
        samples: one or more, each with one or more trials.
        error: of the interval.
    """
    shares = np.array([np.mean(each) for each in samples])
    share = float(shares.mean())
    trials = _independent(shares, share, min(map(len, samples)))
    return Interval(share, *wilson(share, trials, error))


def _independent(shares: np.typing.NDArray[np.float64], share: float, each: int) -> float:
    samples = len(shares)
    spread = float(shares.var(ddof=1)) if samples >= _ENOUGH else 0.0
    if not spread:
        return samples
    return min(max(samples, samples * share * (1 - share) / spread), samples * each)
