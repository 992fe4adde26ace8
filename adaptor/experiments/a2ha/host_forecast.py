"""What a bag will cost and when it will end, with an interval, from the tasks that are known so far."""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.estimation.forecast import CONFIDENCE, SHARES, Estimate, estimate, place
from adaptor.budget.estimation.remaining_work import Rest
from adaptor.budget.provisioning.hosts import Hosts, Terms


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Of one bag on hosts that are bought by units."""

    units: Estimate
    """Charged in the end, those already charged included; whole units."""
    said: float
    """The probability that `units` gives its interval: as near to `CONFIDENCE` as whole units can be."""
    end: Estimate
    """The instant of the last result, if new hosts come within a start-up time."""


def forecast(
    rests: Sequence[Rest], hosts: Iterable[Hosts], terms: Terms, charged: int, now: float
) -> Forecast:
    """From the possible rests, the hosts that are paid now, and the units charged so far.

    What the hosts have no time for is bought in further units, each host losing the residual of a task at its
    end; up to one unit more is paid for hosts that idle while the last tasks run. The bag ends at the
    earliest when all of it is spread over the hosts and the further units at once. It ends at the latest
    when further units are bought only as the present hosts end, and as many as the work needs by its median,
    round after round.
    """
    present = list(hosts)
    draw = random.Random(1)  # noqa: S311
    paid = [(each.count, each.time_left(now)) for each in present]
    further = [_further(each, paid, terms, draw.random()) for each in rests]
    units, said = _whole(sorted(charged + each for each in further))
    there = sum(each.count for each in present)
    pairs = zip(rests, further, strict=True)
    soonest = estimate(now + rest.work / max(1, there + more) for rest, more in pairs)
    last = max((each.ends for each in present), default=now)
    rounds = math.ceil((units.high - charged) / max(1, units.value - charged))
    most = estimate(each.work for each in rests).high
    latest = max(last + rounds * terms.unit if rounds else min(last, now + most), soonest.low)
    usual = soonest.value + estimate(each.residual for each in rests).value
    return Forecast(units=units, said=said, end=Estimate(soonest.low, min(latest, usual), latest))


def _further(rest: Rest, hosts: Sequence[tuple[int, float]], terms: Terms, idle: float) -> int:
    """Units beyond those of the hosts (how many, and their time left), this part of one idling at the end."""
    if not rest.work:
        return 0
    paid = sum(count * max(0.0, left - rest.residual) for count, left in hosts)
    each_unit = max(terms.usable - rest.residual, terms.usable / 2)
    return max(0, math.ceil((rest.work - paid) / each_unit + idle))


def _whole(found: Sequence[int]) -> tuple[Estimate, float]:
    """The interval of whole numbers whose probability is the nearest to `CONFIDENCE`, and that probability.

    One that holds nine cases in ten at least holds more where a number at its ends has many of them; such a
    number is left out where that comes nearer.
    """
    low, middle, high = (found[place(found, share)] for share in SHARES)

    def share(ends: tuple[int, int]) -> float:
        return (bisect.bisect_right(found, ends[1]) - bisect.bisect_left(found, ends[0])) / len(found)

    lows, highs = (low, min(low + 1, middle)), (high, max(high - 1, middle))
    best = min(itertools.product(lows, highs), key=lambda ends: abs(share(ends) - CONFIDENCE))
    return Estimate(best[0], middle, best[1]), share(best)
