"""Beliefs about the runtime of a bag's tasks, from what has been seen of them. Pure; times are seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from adaptor.crafting.situation import SiteRules
from adaptor.runtimes.known import KnownRuntimes

ALIKE = 1.02  # runtimes within this factor are alike
_UNIFORM = 0.07
"""The share of the weight that stays equal for all runtimes: as many bags of a kind have a mean that is off
that of the earlier ones by a factor of ten (`lab/campaign/earlier_bags.py`, three traces)."""
_REACH = 8.0
"""A predicted mean divided by this is the shortest runtime to consider, where that is shorter than usual."""
_OUT_OF_REACH = 1e-3
"""The sum of the weights of the runtimes still possible, below which a predicted one says nothing of them."""
USUAL = 64_800.0
"""The max_tr of De Rose et al. (2008, §4.4), with which the times in seconds were found."""
_FIRST = 60.0
"""The shortest runtime to consider before anything is known, where requests last `USUAL` or longer."""


class Belief(msgspec.Struct, frozen=True):
    """One possible distribution of the runtimes."""

    mean: float
    longest: float
    weight: float = 1.0
    """Weight of the belief; the weights of all beliefs make 1."""

    @property
    def alike(self) -> bool:
        """Whether all tasks run equally long."""
        return self.longest <= self.mean * ALIKE


def beliefs(times: KnownRuntimes, now: float, running: int, rules: SiteRules) -> list[Belief]:
    """Beliefs about the runtimes: one once enough tasks have finished, before that a ladder of them.

    The rungs are `60 s × 2^k`, all equally likely. If the runtime is known from the user or from earlier bags
    of the kind, the rungs are closer and most of the weight is near that time. Rungs that a task has
    outlasted, and rungs beyond its time-out, are left out. Tasks that still run or were cut count with half
    of what they may still need. Otherwise the short tasks, which finish first, would speak for all.

    Args:
        running: tasks that run now.
        rules: of the place with the longest requests.
    """
    outlasted, possible = times.outlasted(now), min(rules.longest_task, times.ended_after)
    others = (running, times.age(now)), (times.cut, times.cut_after)
    longer = sum(count for count, ran in others if ran * ALIKE > times.mean)
    if times.finished and not times.outnumbered_by(longer):
        return [_learned(times, others, longer, outlasted, possible)]
    return _ladder(times, max(_FIRST * usual_share(rules), 1.0), outlasted, possible)


def usual_share(rules: SiteRules) -> float:
    """The factor for times found with `USUAL`: where requests last an hour the queue moves in minutes."""
    return min(1.0, rules.limits.max_tr / USUAL)


def _learned(
    times: KnownRuntimes, others: Iterable[tuple[int, float]], longer: int, outlasted: float, possible: float
) -> Belief:
    """Belief from the finished tasks, and `others` in groups of a number and a mean age. The longest task
    follows from the rate at which tasks finished: the `longer` ones are left, and one more that was not seen
    yet."""
    if times.longest <= times.mean * ALIKE and outlasted <= times.longest * ALIKE:
        return Belief(times.mean, times.longest)
    until = max(times.longest, outlasted)
    rate = times.finished / (until - min(times.mean, max(0.0, 2 * times.mean - until)))
    longest = min(possible, max(1.1 * outlasted, until + (longer + 1) / rate))
    total = sum(count * (min(ran, longest) + longest) / 2 for count, ran in others)
    mean = (times.finished * times.mean + total) / (times.finished + sum(count for count, _ in others))
    return Belief(min(mean, longest / ALIKE**2), longest)


def _ladder(times: KnownRuntimes, first: float, outlasted: float, possible: float) -> list[Belief]:
    """Rungs of runtimes; those near the user's word, or else near earlier bags of the same kind, weigh
    most."""
    expected = times.hint
    if not expected:
        middle, step, below = first, 2.0, 0
    else:
        least = min(first, max(1.0, expected / _REACH))
        middle, step, below = expected, math.sqrt(2.0), max(0, math.floor(2 * math.log2(expected / least)))
    above = math.floor(math.log(max(1.0, possible / middle), step) + 1e-9)
    rungs = [middle * step**place for place in range(-below, above + 1)]
    rungs = [rung for rung in rungs if outlasted < rung <= possible] or [possible]
    near = [math.exp(-((math.log(rung / middle) / math.log(times.hint_within)) ** 2) / 2) for rung in rungs]
    uniform, total = _UNIFORM, sum(near)
    if not expected or total < _OUT_OF_REACH:  # the tasks have outlasted it by far
        uniform, total = 1.0, math.inf
    weights = [uniform / len(rungs) + (1 - uniform) * weight / total for weight in near]
    return [Belief(rung, rung, weight) for rung, weight in zip(rungs, weights, strict=True)]
