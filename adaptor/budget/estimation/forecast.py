"""What a bag that is bought for by requests will cost, and when it will end, with an interval. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.estimation.bag_knowledge import BagKnowledge
from adaptor.budget.estimation.remaining_work import possible_rests

FIRST = 30
"""Finished tasks before a forecast is worth its name."""
CONFIDENCE = 0.9
SHARES = ((1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2)
"""Of the cases below the low end, the value and the high end of an interval."""


class Estimate(msgspec.Struct, frozen=True):
    """A figure with the interval in which it lies with probability `CONFIDENCE`; `value` is as often too
    high as too low."""

    low: float
    value: float
    high: float


def estimate(cases: Iterable[float]) -> Estimate:
    """From cases that are equally likely."""
    found = sorted(cases)
    low, value, high = (found[place(found, share)] for share in SHARES)
    return Estimate(low, value, high)


def place(found: Sequence[float], share: float) -> int:
    """The index up to which this share of the sorted cases lies."""
    return min(len(found) - 1, math.ceil(share * len(found)) - 1)


class Forecast(msgspec.Struct, frozen=True):
    """With an interval in which each figure lies with probability 0.9."""

    cost: Estimate
    """Credits in the end, those charged already included."""
    end: Estimate | None
    """Epoch seconds; None while nothing is there or asked for that could end it."""
    work: Estimate
    """Seconds of a slot that the tasks without a result still need."""


def worth_telling(finished: int, tasks: int) -> bool:
    """Whether enough is known: 30 tasks, fewer in a small bag."""
    return finished >= max(2, min(FIRST, tasks // 4))


def forecast(known: BagKnowledge) -> Forecast:
    """The possible rests (`possible_rests`) at the site's rate, and what is paid besides.

    Time that is paid already costs nothing more. Slots end together, in whole charging units, as those of a
    pilot do; each waits for up to two halves of a task that run beside it, and may have to start once more.
    At the least nothing is wasted. The end waits for the longest task, which may begin at any time.

    Raises:
        ValueError: fewer than two tasks have finished.
    """
    longest = max(*known.finished, *known.running, 0.0)
    rests = possible_rests(known.finished, known.running, known.waiting, longest, known.every)
    work = estimate(each.work for each in rests)
    if not work.high:
        at = Estimate(known.now, known.now, known.now)
        return Forecast(Estimate(known.charged, known.charged, known.charged), at, work)
    slots = max(1, min(known.slots, known.waiting + len(known.running)))
    draw = random.Random(1)  # noqa: S311
    cost, ends = [], []
    for rest in rests:
        idle = draw.random() * 2 * rest.residual + draw.random() * known.startup
        unpaid = rest.work / slots + idle - known.paid / slots
        cost.append(slots * known.unit * max(0, math.ceil(unpaid / known.unit)))
        ends.append(max(rest.work / slots + idle, draw.random() * rest.work / slots + rest.longest))
    more = _from(max(0.0, work.low - known.paid), cost, known.charged, known.rate)
    begin = max(known.now, known.starts)
    return Forecast(more, _from(work.low / slots, ends, begin, 1.0) if known.slots else None, work)


def _from(least: float, cases: Sequence[float], start: float, rate: float) -> Estimate:
    found = estimate(cases)
    return Estimate(start + rate * least, start + rate * found.value, start + rate * found.high)
