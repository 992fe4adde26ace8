"""The survival function of a hazard, from its definition: what `Hazard.survival` is, and `Hazard.longest`
must invert."""

from __future__ import annotations

import math
from itertools import pairwise

from adaptor.donation.idleness import EDGES, Hazard


def survival(hazard: Hazard, age: float, more: float) -> float:
    """The probability that a node that has been idle for `age` seconds stays so for `more`."""
    return math.exp(_up_to(hazard, max(0.0, age)) - _up_to(hazard, max(0.0, age) + more))


def _up_to(hazard: Hazard, age: float) -> float:
    pieces = zip(hazard.rates, pairwise((*EDGES, math.inf)), strict=True)
    return sum(rate * (min(age, end) - begin) for rate, (begin, end) in pieces if age > begin)
