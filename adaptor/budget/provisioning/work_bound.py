"""Buying only what will nearly certainly be paid for anyway: the estimator that is not of the papers.

The papers scale a point estimate by a ratio that grows with the number of finished tasks, whatever
their spread. Here the unknown is the work that remains, and it has a lower bound:

- What remains of the bag is a random part of it, so its mean differs from that of the finished tasks with
  the relative deviation cv·√(1/n + 1/m) for n finished tasks and m waiting ones. cv is the coefficient
  of variation so far, mixed with that of the exponential distribution (1) while few tasks are known.
- A host ends amid a task, so of its last task a part is lost: E[T²] / 2 E[T] on average.

A bag buys hosts for the part of the lower bound for which the running hosts have no time, rounded up: each
begun unit of it would be charged sooner or later, so the bag buys it at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.runtimes.known import KnownRuntimes


def overflow(
    runtimes: KnownRuntimes, waiting: int, hosts: Iterable[Hosts], now: float, certainty: float
) -> float:
    """Seconds of work for which the hosts have no time, by the lower bound; negative: time to spare."""
    work = lower_bound(runtimes, waiting, now, certainty) + runtimes.running * runtimes.residual
    return work - sum(host.count * capacity(host.time_left(now), runtimes) for host in hosts)


def lower_bound(runtimes: KnownRuntimes, waiting: int, now: float, certainty: float) -> float:
    """Seconds of work that the waiting tasks have with this probability at least.

    Where the running tasks have run longer than the finished ones took, they count too (A²HA Fig. 7).
    """
    if not waiting:
        return 0.0
    return waiting * runtimes.corrected_mean(now) / runtimes.deviating(waiting, certainty)


def capacity(time_left: float, runtimes: KnownRuntimes) -> float:
    """Seconds of a host's time that end in finished tasks, on average."""
    return max(0.0, time_left - runtimes.residual)


def necessary(runtimes: KnownRuntimes, uncovered: float, terms: HostTerms) -> int:
    """Hosts of one unit for `uncovered` seconds of work."""
    if uncovered <= 0:
        return 0
    return math.ceil(uncovered / max(capacity(terms.usable, runtimes), terms.usable / 2))


def samples(tasks: int) -> int:
    """Hosts to begin with: a fifth of the root of the tasks, so that one bad first task misleads less."""
    return max(1, math.isqrt(tasks) // 5)
