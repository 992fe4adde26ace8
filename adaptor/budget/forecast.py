"""What a bag will cost and when it will end, with an interval, from the tasks that are known so far."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from statistics import NormalDist

import msgspec

from adaptor.budget.hosts import Hosts, Terms

FIRST = 30
"""Finished tasks before a forecast is worth its name."""
CONFIDENCE = 0.9
_FARTHEST = math.log(1000)
"""An upper end beyond so many times the value says no more than that nothing is known."""
_SKEWED = 0.5
"""From this skewness of the runtimes on, the bag may be log-normal."""
_LOG_SYMMETRIC = -0.5
"""The least skewness of the logarithms with which a skewed sample may well be of a log-normal bag."""


class Estimate(msgspec.Struct, frozen=True):
    """A figure with the interval in which it lies with probability `CONFIDENCE`."""

    low: float
    value: float
    high: float


class Forecast(msgspec.Struct, frozen=True):
    """Of one bag on hosts that are bought by units."""

    units: Estimate
    """Charged in the end, those already charged included."""
    end: Estimate
    """The instant of the last result, if new hosts come within a start-up time."""


_Masses = list[tuple[float, float]]


class _Moments(msgspec.Struct, frozen=True):
    mean: float
    deviation: float
    skewness: float
    residual: float
    """E[T²] / 2 E[T]: what is left of a task at a random instant of it."""


def remaining_work(finished: Sequence[float], running: Sequence[float], waiting: int) -> Estimate:
    """Seconds of work in the tasks without a result, from runtimes and from times run so far.

    Running tasks are censored observations: their share of the distribution is redistributed to the longer
    runtimes (Efron's form of the Kaplan-Meier estimator). The interval is that of the mean of the other
    part of a random sample, by Student's t, in logarithms because runtimes are skewed.

    Raises:
        ValueError: fewer than two tasks have finished.
    """
    if len(finished) < 2:
        raise ValueError(f"a forecast needs two finished tasks at least, there are {len(finished)}")
    masses = _masses(finished, running)
    known = _moments(masses)
    value = waiting * known.mean + _rest_of(running, masses, known.deviation)
    left = waiting + len(running)
    if not left or not value:
        return Estimate(0.0, 0.0, 0.0)
    away = _student((1 + CONFIDENCE) / 2, len(finished) - 1)
    share = math.sqrt(1 / len(finished) + 1 / left)
    up = down = away * share * known.deviation / known.mean
    if known.skewness > _SKEWED:
        up = max(up, _lognormal_up(masses, known, away, len(finished), left))
    return Estimate(value * math.exp(-down), value, value * math.exp(min(up, _FARTHEST)))


def forecast(
    work: Estimate, hosts: Iterable[Hosts], terms: Terms, charged: int, residual: float, now: float
) -> Forecast:
    """From the remaining work, the hosts that are paid now, and the units charged so far.

    What the hosts have no time for is bought in further units. The bag ends at the earliest when all of it
    is spread over the hosts and the further units at once. It ends at the latest when further units are
    bought only as the present hosts end, and as many as the work needs by its mean, round after round.
    """
    present = list(hosts)
    there = sum(each.count for each in present)
    paid = sum(each.count * max(0.0, each.time_left(now) - residual) for each in present)
    each_unit = max(terms.usable - residual, terms.usable / 2)

    def further(seconds: float) -> int:
        return max(0, math.ceil((seconds - paid) / each_unit))

    def soonest(seconds: float) -> float:
        return now + seconds / max(1, there + further(seconds))

    last = max((each.ends for each in present), default=now)
    rounds = math.ceil(further(work.high) / max(1, further(work.value)))
    latest = last + rounds * terms.unit if rounds else min(last, now + work.high)
    units = Estimate(*(charged + further(seconds) for seconds in (work.low, work.value, work.high)))
    return Forecast(units, Estimate(soonest(work.low), min(latest, soonest(work.value) + residual), latest))


def residual_of(finished: Sequence[float], running: Sequence[float]) -> float:
    """What is left of a task at a random instant of it, in the mean, in seconds."""
    return _moments(_masses(finished, running)).residual


def _masses(finished: Sequence[float], running: Sequence[float]) -> _Masses:
    """Runtimes with their probabilities.

    A task that has run longer than any finished one took is taken to need their deviation more.
    """
    beyond = statistics.pstdev(finished)
    events = sorted([(runtime, 0) for runtime in finished] + [(ran, 1) for ran in running])
    mass = 1 / len(events)
    masses = []
    for index, (time, censored) in enumerate(events):
        to_the_right = len(events) - index - 1
        if censored and to_the_right:
            mass += mass / to_the_right
        else:
            masses.append((time + beyond * censored, mass))
    return masses


def _moments(masses: _Masses) -> _Moments:
    mean = sum(time * mass for time, mass in masses)
    squares = sum(time * time * mass for time, mass in masses)
    variance = sum((time - mean) ** 2 * mass for time, mass in masses)
    third = sum((time - mean) ** 3 * mass for time, mass in masses)
    deviation = math.sqrt(variance)
    cube = deviation**3 if deviation > 1e-9 * mean else 0.0
    return _Moments(
        mean=mean,
        deviation=deviation,
        skewness=third / cube if cube else 0.0,
        residual=squares / (2 * mean) if mean else 0.0,
    )


def _lognormal_up(masses: _Masses, known: _Moments, away: float, finished: int, left: int) -> float:
    """How far up, in logarithms, the mean may lie if the bag is log-normal; 0 where it hardly is.

    A small sample of such a bag has rarely seen its longest tasks, so that its own deviation says too
    little. By Cox's method for the mean of a log-normal distribution (Land 1971; Zhou and Gao 1997).
    """
    logs = _moments([(math.log(max(time, 1e-3)), mass) for time, mass in masses])
    if logs.skewness < _LOG_SYMMETRIC:
        return 0.0
    variance = logs.deviation**2
    mean = logs.mean + variance / 2 - math.log(known.mean)
    of_mean = variance / finished + variance**2 / (2 * (finished - 1))
    return mean + away * math.sqrt(of_mean + math.expm1(variance) / left)


def _rest_of(running: Sequence[float], masses: _Masses, deviation: float) -> float:
    """What the running tasks still need: of the runtimes longer than they have run, the mean.

    One that has run longer than all of them is taken to need a standard deviation more.
    """
    rest, place, mass, area = 0.0, len(masses), 0.0, 0.0
    for ran in sorted(running, reverse=True):
        while place and masses[place - 1][0] > ran:
            place -= 1
            mass += masses[place][1]
            area += masses[place][0] * masses[place][1]
        rest += area / mass - ran if mass else deviation
    return rest


def _student(probability: float, freedom: int) -> float:
    """The quantile of Student's t, by Fisher's expansion (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
