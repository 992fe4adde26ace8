"""The best (cost, time) of a bag: a search over policies that know every runtime, and when nodes are idle."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from adaptor.budget.accounting.credits import in_credits
from adaptor_experiments.forecasts.site_run import CheckedSite
from adaptor_experiments.frontier.design import Wish

_FILLS = 20  # times up to which the cheaper hosts are filled, evenly in the logarithm of time
_MOST_HOSTS = 64  # of all sites together


class Policy(msgspec.Struct, frozen=True, order=True):
    """Cost and end of a bag on some hosts in some pilots."""

    cost: float
    """Processor-seconds that are charged, times their price."""
    end: float
    """Seconds until the last task ends."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts of one price. Times in seconds."""

    price: float
    """Credits for a processor-hour."""
    hosts: int
    pilots: int
    """Pilots that may run at a time."""
    unit: int
    startup: float
    longest: float
    """Seconds of the longest pilot."""
    windows: tuple[tuple[float, float], ...] = ((0.0, math.inf),)
    """Times at which the hosts are there: begins and ends."""

    def charged(self, work: Sequence[float]) -> float:
        """Cost of pilots, all from the same time on, each until the last of its hosts is ready.

        `work`: seconds of each host, the longest first.
        """
        width, cost = max(1, math.ceil(len(work) / self.pilots)), 0.0
        for first in range(0, len(work), width):
            units = math.ceil((self.startup + work[first]) / self.unit)
            cost += len(work[first : first + width]) * units * self.unit
        return cost * self.price

    def filled(self, runtimes: Sequence[float], hosts: int, until: float) -> tuple[Policy, list[float]]:
        """Work of some hosts until then, each task in the first place that holds it; and the tasks left
        over."""
        begins = [begin for begin, _ in self.windows if begin < until]
        ends = [min(end, until, begin + self.longest) for begin, end in self.windows if begin < until]
        room = np.repeat([end - begin - self.startup for begin, end in zip(begins, ends, strict=True)], hosts)
        work, left = np.zeros(len(room)), []
        for runtime in runtimes:
            place = int(np.argmax(work + runtime <= room)) if len(room) else 0
            if not len(room) or work[place] + runtime > room[place]:
                left.append(runtime)
            else:
                work[place] += runtime
        cost = end = 0.0
        for begin, part in zip(begins, np.split(work, max(1, len(begins))), strict=True):
            used = sorted(part[part > 0].tolist(), reverse=True)
            cost += self.charged(used)
            end = max(end, begin + self.startup + used[0]) if used else end
        return Policy(cost, end), left


def offer_of(site: CheckedSite) -> Offer:
    """Its formal requests; if it has donated nodes, those alone."""
    tariff, limits, donation = site.tariff, site.limits, site.donation
    if donation is None:
        most, pilots = limits.max_pending_requests * limits.max_proc, limits.max_pending_requests
    else:
        most = pilots = donation.max_nodes or site.processors
    return Offer(
        price=in_credits(tariff.price("explicit" if donation is None else "donated")),
        hosts=min(site.processors, most),
        pilots=pilots,
        unit=tariff.charging_unit,
        startup=float(site.startup),
        longest=float(limits.max_tr),
        windows=((0.0, math.inf),) if donation is None else tuple(_idle(site)),
    )


def _idle(site: CheckedSite) -> Iterator[tuple[float, float]]:
    """Times in which no job of local users holds the donated nodes."""
    free = 0.0
    for begin, run in zip(site.jobs.submit.tolist(), site.jobs.run.tolist(), strict=True):
        yield free, float(begin)
        free = float(begin + run)


def loads(runtimes: Sequence[float], hosts: int) -> list[float]:
    """Seconds of work of each host, the longest first: the longest task to the host with the least work."""
    found = [0.0] * hosts
    for runtime in sorted(runtimes, reverse=True):
        heapq.heapreplace(found, found[0] + runtime)
    return sorted(found, reverse=True)


def frontier(runtimes: Sequence[float], *sites: CheckedSite) -> list[Policy]:
    """The policies that no other beats in cost and in time at one or two sites, the cheapest first.

    Any number of hosts at one site. At two, some hosts of the cheaper one are filled up to some time, and
    some of the other one share what is left.
    """
    *cheaper, last = sorted(map(offer_of, sites), key=lambda offer: offer.price)
    tasks = sorted(runtimes, reverse=True)
    found = list(_shared(Policy(0.0, 0.0), tasks, last, range(1, last.hosts + 1)))
    for offer in cheaper:
        for until in _fills(tasks, offer):
            for hosts in _counts(offer.hosts):
                found += _shared(*offer.filled(tasks, hosts, until), last, _counts(last.hosts))
    best: list[Policy] = []
    for policy in sorted(found):
        if not best or policy.end < best[-1].end:
            best.append(policy)
    return best


def _shared(done: Policy, left: Sequence[float], offer: Offer, counts: Iterable[int]) -> Iterator[Policy]:
    """Policies of the work done, with the tasks left over on each of these numbers of hosts."""
    if not left:
        yield done
        return
    for hosts in (count for count in counts if count <= len(left)):
        work = loads(left, hosts)
        end = offer.startup + work[0]
        if end <= offer.longest:
            yield Policy(done.cost + offer.charged(work), max(done.end, end))


def _counts(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, ... and the most."""
    powers = [2**power for power in range(most.bit_length())]
    return sorted({most, *(count for power in powers for count in (power, power * 3 // 2) if count <= most)})


def _fills(tasks: Sequence[float], offer: Offer) -> list[float]:
    """Times up to which hosts are filled: evenly in the logarithm, and ends of units where these are few."""
    work = math.fsum(tasks)
    least, most = offer.startup + max(tasks[0], work / _MOST_HOSTS), 2 * (offer.startup + work)
    units = range(offer.unit, math.ceil(most / 2), offer.unit)
    return [*map(float, units if len(units) <= _FILLS else ()), *np.geomspace(least, most, _FILLS).tolist()]


def factor(
    policies: Sequence[Policy], wish: Wish, cost: float, end: float, budget: float, by: float
) -> float | None:
    """Factor to the best in what the wish leaves open; None: no policy meets the wish.

    With a deadline or `cheap` that is the cost, with a budget or `fast` the time, else the worse of the two,
    compared with the policy for which that is least.

    Args:
        policies: `frontier` of the bag.
        cost: processor-seconds times their price, as the budget.
        end: seconds, as the deadline `by`.
    """
    within = [policy for policy in policies if policy.cost <= budget and policy.end <= by]
    if wish.prefer == "cheap" or (wish.deadline is not None and wish.prefer is None):
        return max((cost / policy.cost for policy in within), default=None)
    if wish.prefer == "fast" or wish.budget is not None:
        return max((end / policy.end for policy in within), default=None)
    return min((max(cost / policy.cost, end / policy.end) for policy in within), default=None)
