"""When an array of plain jobs would be done on the same queue: a job per task, all with one limit. Pure.

Each job waits for a hole that is as long as its limit, and holds it for as long as its task runs. No limit on
the jobs of one user is known, so there is none.
"""

from __future__ import annotations

import heapq
import math
import random

from adaptor.crafting.fits import placeable, width
from adaptor.crafting.futures.drawn_queue import drawn, fitting, planned
from adaptor.crafting.profile import Profile
from adaptor.forecast.estimate import Estimate, estimate
from adaptor.forecast.known import KnownBag, KnownSite
from adaptor.runtimes.possible import RuntimeCases, Runtimes

DRAWS = 20
_EACH = 3
"""Of this number of cases, in the order of their means, one is looked at."""
_JOBS = 200
"""Jobs that are placed one by one, at most; of more, several together."""


def array_end(known: KnownBag, site: KnownSite, limit: float) -> Estimate | None:
    """The end of such an array at a site (epoch seconds); None: its queue is not known, or never.

    Args:
        limit: of each job, seconds; a task that takes longer fails at it.
    """
    queue = site.queue
    if queue is None or not known.waiting:
        return None
    draw = random.Random(1)  # noqa: S311
    cases = RuntimeCases(known.runtimes, draw)
    runtimes = sorted((cases.next() for _ in range(_EACH * DRAWS)), key=lambda each: each.mean)
    plan = planned(queue)
    ends = []
    for each in runtimes[_EACH // 2 :: _EACH]:
        future = drawn(
            queue, site.run_shares, site.seen_since, (), draw, site.run_shares_by_job, plan
        ).profile
        future = fitting(future, queue, site.task).copy()
        ends.append(_placed(future, known, site, each, limit))
    found = estimate(ends)
    return None if math.isinf(found.value) else found


def _placed(free: Profile, known: KnownBag, site: KnownSite, runtimes: Runtimes, limit: float) -> float:
    """The end of the last job."""
    assert site.queue is not None
    each = width(site.queue, site.task)
    most = max(1, min(placeable(site.queue, site.task) // (4 * each), known.at_once or known.waiting))
    together = min(most, max(1, math.ceil(known.waiting / _JOBS)))
    at_once = None if known.at_once is None else max(1, known.at_once // together)
    ends: list[float] = []
    jobs = math.ceil(known.waiting / together)
    several = max(1, math.ceil(jobs / _JOBS))
    last = reached = known.now
    for number in range(0, jobs, several):
        count = min(several, jobs - number)
        takes = min(runtimes.several(count, number / jobs), count * limit)
        if at_once is not None and len(ends) >= at_once:  # as `--array=…%50` does
            reached = max(reached, heapq.heappop(ends))
        start = free.earliest_start(together * each, limit, reached)
        if math.isinf(start):
            return math.inf
        free.take(start, takes, together * each)
        reached, last = start, max(last, start + takes)
        heapq.heappush(ends, start + takes)
    return last
