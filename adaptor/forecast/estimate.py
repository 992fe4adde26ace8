"""A figure with its interval, from cases that are equally likely. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

CONFIDENCE = 0.9
_SHARES = ((1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2)
"""Of the cases below the low end, the value and the high end of an interval."""

_ROUNDING = 1e-6  # the smallest part of a credit, and less than any clock resolves of a second


class Estimate(msgspec.Struct, frozen=True):
    """A figure with the interval in which it lies with probability `CONFIDENCE`; `value` is as often too
    high as too low."""

    low: float
    value: float
    high: float

    def holds(self, figure: float) -> bool:
        """Whether the interval holds what the figure came to, up to a rounding error."""
        return self.low - _ROUNDING <= figure <= self.high + _ROUNDING


def estimate(figures: Iterable[float]) -> Estimate:
    """Raises IndexError: there is no figure."""
    found = sorted(figures)
    cases = len(found)
    low, value, high = (found[min(cases - 1, math.ceil(share * cases) - 1)] for share in _SHARES)
    return Estimate(low, value, high)
