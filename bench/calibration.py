"""A fixed amount of work, measured beside everything else, by which the speeds of machines are compared.

Half of it is plain Python, half is numpy: sorting and sums, as in the adaptor's own work.
"""

from __future__ import annotations

import numpy as np

from bench.stopwatch import median_seconds

REFERENCE = 0.075
"""Seconds that it takes on the reference processor, for which the targets hold: a quiet core of 2026."""
_NUMBERS = 1_300_000
_LOOPS = 430_000


def calibration() -> float:
    """Seconds that the work takes here and now; the median of three."""
    return median_seconds(_work, 3)


def at_reference(seconds: float, calibrated: float) -> float:
    """What took so many seconds where the calibration took `calibrated`, on the reference processor."""
    return seconds * REFERENCE / calibrated


def _work() -> float:
    total, seen = 0, {}
    for number in range(_LOOPS):
        total += number & 7
        seen[number & 1023] = total
    numbers = np.random.default_rng(1).random(_NUMBERS)
    return float(np.cumsum(np.sort(numbers))[-1]) + total
