"""The standard normal distribution, and normal runtimes above a time: those of tasks that still run. Pure."""

from __future__ import annotations

import math


def density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def above(z: float) -> float:
    """Share of the values above z.

    `NormalDist().cdf` adds 1 to an error function and loses all digits 8 deviations from the mean.
    """
    return 0.5 * math.erfc(z / math.sqrt(2))


def excess(mean: float, deviation: float, elapsed: float) -> tuple[float, float]:
    """Mean excess and variance, in seconds, of a runtime known to be above `elapsed` (BaTS, tail phase).

    The mean of a normal runtime above `elapsed`, less `elapsed`: never below 0, and the longer a task has
    run, the less.
    """
    spread = max(deviation, 1e-9 * mean)
    z = (elapsed - mean) / spread
    if z > 8:  # both parts of the ratio below vanish; it tends to z + 1/z
        return spread / z, (spread / z) ** 2
    hazard = density(z) / above(z)
    return spread * (hazard - z), max(0.0, spread**2 * (1 + z * hazard - hazard**2))
