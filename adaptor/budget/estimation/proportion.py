"""How sure a share of successes is. Pure."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(share: float, trials: float, error: float = 0.05) -> tuple[float, float]:
    """The interval around a share (Wilson 1927), which misses the true one this often.

    Args:
        share: of the trials, 0 to 1.
        trials: independent ones, above 0.
        error: of the interval.
    """
    z = NormalDist().inv_cdf(1 - error / 2)
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))
