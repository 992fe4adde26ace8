"""What lies beyond a point of a log-normal distribution. Pure."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

_FAR_OUT = 30.0
"""Deviations from the mean up to which a normal survival function is a number that can be divided by."""
_NORMAL = NormalDist()


def beyond(ran: float, middle: float, spread: float, draw: random.Random) -> float:
    """A log-normal runtime, given that it is longer than `ran`: by the inverse of the survival function."""
    z = (math.log(ran) - middle) / spread
    left = 0.5 * math.erfc(min(z, _FAR_OUT) / math.sqrt(2)) * (1.0 - draw.random())
    found = -_NORMAL.inv_cdf(min(left, 1.0 - 1e-12)) + max(0.0, z - _FAR_OUT)
    return math.exp(min(700.0, middle + spread * max(found, z)))


def survival(ran: float, middle: float, spread: float) -> float:
    """How many log-normal tasks run longer than that, as a share of all."""
    return math.exp(max(-60.0, log_survival((math.log(ran) - middle) / spread)))


def log_survival(z: float) -> float:
    if z > 6:
        return -0.5 * z * z - math.log(z) - 0.919
    return math.log(max(1e-300, 0.5 * math.erfc(z / math.sqrt(2))))
