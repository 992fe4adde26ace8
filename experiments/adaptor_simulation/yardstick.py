"""A lower bound on the turnaround of a grid job, to see how far a heuristic is from the possible."""

from __future__ import annotations

import numpy as np

from adaptor_simulation import kernels as k
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.kernels import Array
from adaptor_simulation.queue_rules import BY_SUBMISSION

_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # quantiles of the runtimes at which whole tasks are counted


class Yardstick:
    """Bound that no way of making requests can beat, for jobs that are submitted at this instant.

    The bound holds for every sequence of requests, even with all runtimes and all later jobs of local users
    known. It is the largest of three; T is the instant, P the processors of the cluster, C at most P what the
    limits allow us at once (`max_pending_requests × max_proc`). All that is assumed: a task runs without a
    break on one processor, and jobs that run are not preempted. Where tasks take w processors each, at most
    ⌊A(t) / w⌋ run at the same time: that stands in for A(t), and the work of the bag for its
    processor-seconds. Nodes only take possibilities away.

    Only local jobs that are in the system at T count. Later ones start behind our requests where those were
    made before. With the future known they could always have been made before, so the bound leaves later jobs
    out.

    1. *Capacity.* A job that runs at T holds its processors until its end, whatever we do. So at any
       t >= T at most A(t) = min(C, P - processors of those that still run) are ours, and no task ends
       before ∫A from T on has reached the work of the bag. A never falls.
    2. *Whole tasks.* As A never falls, it is a set of processors of which the k-th is there from its
       a_k on: whenever a task starts, fewer than A run, so one of those that are there is idle. One
       processor ends at most ⌊(t - a_k) / L⌋ tasks of L seconds or more by t. So the n tasks of at
       least L seconds are not over before Σ_k ⌊(t - a_k) / L⌋ >= n. (For the longest this says that it
       needs its runtime once a processor is there.)
    3. *Promises.* Under conservative backfilling a job that waits at T never starts later than its
       reservation R; it may start earlier. So by any t it has used at least
       processors × min(run, max(0, t - R)), and of the P × (t - T) processor-seconds at most the rest
       is ours. Under EASY, a fair share or a bounded depth nothing is promised that we could not
       delay, except by what runs: no third.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.now = cluster.now
        self._processors = cluster.processors
        running = cluster.running_rows()
        self._ends, self._needs = running[:, k.END], running[:, k.NEED]
        holds = [(self._ends, np.full_like(self._ends, self.now), self._needs)]
        if cluster.policy == "conservative" and cluster.rules == BY_SUBMISSION:
            waiting = cluster.waiting_rows()
            reserved = waiting[:, k.START]
            holds.append((reserved + waiting[:, k.RUN], reserved, waiting[:, k.NEED]))
        self._promised = [np.concatenate(column) for column in zip(*holds, strict=True)]

    def bound(self, runtimes: Array, most: int, each: int = 1) -> int:
        """Seconds from now that a bag needs at least, with at most `most` processors at once.

        Args:
            each: processors of a task.

        The cluster must not have had a job from outside; runtimes are whole seconds, at least one task.
        """
        since, free = self._capacity(most)
        free = free // each
        work = int(runtimes.sum())
        return max(
            _until_area(since, free, work),
            self._until_promises(work * each),
            *(_until_tasks(since, free, level, count) for level, count in _levels(runtimes)),
        )

    def _capacity(self, most: int) -> tuple[Array, Array]:
        """A(t): seconds from now, and the processors from each on."""
        since = np.unique(np.append(self._ends, self.now)) - self.now
        still = (self._ends[None, :] - self.now > since[:, None]) @ self._needs
        return since, np.minimum(most, self._processors - still)

    def _until_promises(self, work: int) -> int:
        ends, starts, needs = self._promised
        since = np.unique(np.concatenate([ends, starts, [self.now]]) - self.now)
        at = since[:, None] + self.now
        held = ((starts[None, :] <= at) & (at < ends[None, :])) @ needs
        return _until_area(since, self._processors - held, work)


def _until_area(since: Array, free: Array, work: int) -> int:
    """Time at which the area under a step function, the last step of which lasts for ever, reaches the
    work."""
    area = np.concatenate([[0], np.cumsum(np.diff(since) * free[:-1])])
    step = int(np.searchsorted(area, work, side="left")) - 1
    return int(since[step]) + -(-(work - int(area[step])) // max(1, int(free[step])))


def _levels(runtimes: Array) -> list[tuple[int, int]]:
    """Some runtimes of the bag, and how many tasks run at least that long."""
    ordered = np.sort(runtimes)
    places = sorted({int(share * (len(ordered) - 1)) for share in _SHARES})
    levels = {int(ordered[place]) for place in places}
    return [(level, len(ordered) - int(np.searchsorted(ordered, level))) for level in sorted(levels)]


def _until_tasks(since: Array, free: Array, level: int, count: int) -> int:
    """The first second by which a number of tasks of a given length can have ended."""
    more = np.diff(free, prepend=0)
    low, high = 0, int(since[-1]) + level * (-(-count // max(1, int(free[-1]))))
    while low < high:
        middle = (low + high) // 2
        if int((np.maximum(0, middle - since) // level) @ more) >= count:
            high = middle
        else:
            low = middle + 1
    return low
