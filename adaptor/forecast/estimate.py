"""A figure with its interval, from cases that are equally likely. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adaptor.model import Estimate

CONFIDENCE = 0.9
_SHARES = ((1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2)
"""Shares of the cases below the low end, the value and the high end of an interval."""


def estimate(figures: Iterable[float]) -> Estimate:
    """Median of the figures with the interval of 90 %. Raises IndexError: there is no figure."""
    found = sorted(figures)
    cases = len(found)
    low, value, high = (found[min(cases - 1, math.ceil(share * cases) - 1)] for share in _SHARES)
    return Estimate(low, value, high)


def quantile(figure: Estimate, share: float) -> float:
    """The figure that a share of the cases lies below, between the ends of its interval."""
    low, middle, high = _SHARES
    if share < middle:
        return figure.low + (figure.value - figure.low) * max(0.0, (share - low) / (middle - low))
    part = min(1.0, (share - middle) / (high - middle))
    return figure.value + (figure.high - figure.value) * part if part else figure.value
