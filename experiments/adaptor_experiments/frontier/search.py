"""The best (cost, time) of a bag at an empty site: a search over policies that know every runtime."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import msgspec

from adaptor_experiments.forecasts.site_run import CheckedSite
from adaptor_experiments.frontier.design import Wish


class Policy(msgspec.Struct, frozen=True, order=True):
    """What some hosts in some pilots come to."""

    cost: float
    """Processor-seconds that are charged."""
    end: float
    """Seconds until the last task ends."""


def loads(runtimes: Sequence[float], hosts: int) -> list[float]:
    """Seconds of work of each host, the longest first: the longest task to the host with the least work."""
    found = [0.0] * hosts
    for runtime in sorted(runtimes, reverse=True):
        heapq.heapreplace(found, found[0] + runtime)
    return sorted(found, reverse=True)


def charged(work: Sequence[float], width: int, site: CheckedSite) -> float:
    """Processor-seconds of pilots of this width, all from 0 on, each until the last of its hosts is ready."""
    unit, cost = site.tariff.charging_unit, 0.0
    for first in range(0, len(work), width):
        units = math.ceil((site.startup + work[first]) / unit)
        cost += len(work[first : first + width]) * units * unit
    return cost


def frontier(runtimes: Sequence[float], site: CheckedSite) -> list[Policy]:
    """The policies that no other beats in cost and in time, the cheapest first.

    Any number of hosts, in pilots of 1, 2, 4, ... processors, within the limits of the site.
    """
    limits, found = site.limits, []
    widths = [2**power for power in range(limits.max_proc.bit_length())]
    for hosts in range(1, min(site.processors, len(runtimes)) + 1):
        work = loads(runtimes, hosts)
        end = site.startup + work[0]
        pilots = (width for width in widths if hosts <= width * limits.max_pending_requests)
        if end <= limits.max_tr:
            found += [Policy(charged(work, width, site), end) for width in pilots]
    best: list[Policy] = []
    for policy in sorted(found):
        if not best or policy.end < best[-1].end:
            best.append(policy)
    return best


def factor(
    policies: Sequence[Policy], wish: Wish, cost: float, end: float, budget: float, by: float
) -> float:
    """How many times the best it is, in what the wish leaves open; NaN: no policy meets the wish.

    With a deadline or `cheap` that is the cost, with a budget or `fast` the time, else the worse of the two,
    beside the policy for which that is least.

    Args:
        policies: `frontier` of the bag.
        cost: processor-seconds, as the budget.
        end: seconds, as the deadline `by`.
    """
    within = [policy for policy in policies if policy.cost <= budget and policy.end <= by]
    if wish.prefer == "cheap" or (wish.deadline is not None and wish.prefer is None):
        return max((cost / policy.cost for policy in within), default=math.nan)
    if wish.prefer == "fast" or wish.budget is not None:
        return max((end / policy.end for policy in within), default=math.nan)
    return min((max(cost / policy.cost, end / policy.end) for policy in within), default=math.nan)
