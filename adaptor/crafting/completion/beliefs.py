"""What the runtime of a bag's tasks may be, from what has been seen of them. Pure."""

from __future__ import annotations

import msgspec

from adaptor.crafting.situation import TaskTimes

ALIKE = 1.02
"""Runtimes within this factor are alike."""
_FEW, _MANY = 8, 64
"""Finished tasks: fewer may not have shown how long the longest is; so many show it whatever still runs."""
_SHARE = 1 / 3
"""Of the started tasks, those that must have finished before their runtimes speak for the others."""


class Belief(msgspec.Struct, frozen=True):
    """One possible distribution of the runtimes, seconds."""

    mean: float
    longest: float
    weight: float
    """Relative to those of the other beliefs."""

    @property
    def alike(self) -> bool:
        """Whether all tasks run equally long."""
        return self.longest <= self.mean * ALIKE


def beliefs(times: TaskTimes, now: float, running: int, first: float, possible: float) -> list[Belief]:
    """What the runtimes may be: one belief once enough tasks have finished, before that a ladder of them.

    The rungs are `first × 2^k`, all equally likely: nothing speaks for seconds rather than for hours. Those
    that a task has already outlasted are left out. Tasks that still run or were cut count with half of what
    they may need at most, else the short ones, which finish first, would speak for all.

    Args:
        running: tasks that run now.
        first: the shortest runtime to think of.
        possible: the longest task that a request can hold.
    """
    oldest = 0.0 if times.first_start is None else now - times.first_start
    outlasted = max(oldest, times.not_enough)
    age = mean_age(times, now)
    if times.finished and (times.finished >= _MANY or not _mostly_running(times, running, age)):
        return [_learned(times, running, age, outlasted, possible)]
    if times.told and not times.finished and times.told > outlasted:
        shares = ((0.5, 0.15), (1.0, 0.7), (2.0, 0.15))
        told = [Belief(times.told * factor, times.told * factor, weight) for factor, weight in shares]
        return [each for each in told if outlasted < each.mean <= possible] or [_alike(possible)]
    return _ladder(max(first, 1.0), outlasted, possible)


def mean_age(times: TaskTimes, now: float) -> float:
    """Seconds for which the tasks that run have run, in the mean; 0: none does."""
    return 0.0 if times.mean_start is None else now - times.mean_start


def may_outlast(
    seconds: float, times: TaskTimes, now: float, running: int, first: float, possible: float
) -> bool:
    """Whether a task that runs may need more than so many seconds yet.

    As long as few have finished, nothing speaks against it, unless these and those that run are alike.

    Args:
        seconds: from now on.
        running, first, possible: as for `beliefs`.
    """
    found, age = beliefs(times, now, running, first, possible), mean_age(times, now)
    if times.finished and age <= times.longest and all(each.alike for each in found):
        return False
    few = times.finished < _MANY and _few_beside(times, running)
    return few or max(each.longest for each in found) - age > seconds


def _mostly_running(times: TaskTimes, running: int, age: float) -> bool:
    """Whether most of the tasks that were started have outlasted those that have finished."""
    return _few_beside(times, running if age > times.longest * ALIKE else 0)


def _few_beside(times: TaskTimes, others: int) -> bool:
    """Whether too few have finished to speak for so many others."""
    return times.finished < _SHARE * (times.finished + others)


def _learned(times: TaskTimes, running: int, age: float, outlasted: float, possible: float) -> Belief:
    alike = times.longest <= times.mean * ALIKE
    if alike and outlasted <= times.longest * ALIKE:
        return Belief(times.mean, times.longest, 1.0)
    longest = max(times.longest, 1.1 * outlasted)
    if times.finished < _FEW:
        longest *= 1.2
    longest = min(possible, longest)
    rest = (min(age, longest) + longest) / 2
    mean = (times.finished * times.mean + running * rest) / (times.finished + running)
    return Belief(min(mean, longest / ALIKE**2), longest, 1.0)


def _ladder(first: float, outlasted: float, possible: float) -> list[Belief]:
    rungs = []
    rung = first
    while rung <= possible:
        if rung > outlasted:
            rungs.append(_alike(rung))
        rung *= 2
    return rungs or [_alike(possible)]


def _alike(runtime: float) -> Belief:
    return Belief(runtime, runtime, 1.0)
