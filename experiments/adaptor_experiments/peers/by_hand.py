"""Ways in which users run a bag today, on the simulated cluster: job arrays, chunks, whole nodes.

Each policy is a list of jobs with the tasks of each. A job runs its tasks on its processors, each free one
taking the next task, and ends with the last. The user knows the longest task to a factor.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor_simulation.cluster import Cluster
from adaptor_simulation.kernels import Array
from adaptor_simulation.what_if import EVER


class Waiting:
    """Waiting jobs that are submitted through this object; it must be the only one of its cluster that
    submits."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._first = len(cluster.jobs) + len(cluster.outside_starts())
        self._numbers = np.zeros(0, np.int64)
        self._new: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers) + len(self._new)

    def submit(self, processors: int, limit: int) -> int:
        """The number of the job in the cluster. `limit`: seconds."""
        number = self._cluster.submit(processors, limit)
        self._new.append(number)
        return number

    def started(self) -> list[tuple[int, int]]:
        """The numbers of those that have started since the last call, and when, in the order of submission.

        Some start at once.
        """
        self._numbers = np.concatenate([self._numbers, np.array(self._new, np.int64)])
        self._new.clear()
        starts = self._cluster.outside_starts()[self._numbers - self._first]
        found = starts >= 0
        begun = zip(self._numbers[found].tolist(), starts[found].tolist(), strict=True)
        self._numbers = self._numbers[~found]
        return list(begun)

    def cancel(self) -> None:
        """All of them."""
        for number in [*self._numbers.tolist(), *self._new]:
            self._cluster.cancel(number)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Demands of a site on every way to run a bag."""

    longest: int
    """Seconds for which a job may last."""
    node: int = 1
    """Each job has whole nodes of this number of processors."""
    start: int = 0
    """Seconds from the start of a job until its first task begins."""
    backfilled: int | None = None
    """Waiting jobs of a user that backfilling looks at; None: all."""

    def whole(self, processors: int) -> int:
        """Processors of the nodes that have this number of them."""
        return math.ceil(processors / self.node) * self.node


class UserJob(msgspec.Struct, frozen=True):
    """A job that a user writes by hand."""

    processors: int
    used: int
    """Processors of them that are used at the same time, at most."""
    limit: int
    """Seconds."""
    tasks: tuple[int, ...]
    """Runtimes of its tasks in seconds, in their order."""


class ByHand(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a bag that a user cut into jobs. Times in seconds."""

    turnaround: int
    jobs: int
    held: int
    """Processor-seconds."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Way in which a user cuts a bag into jobs."""

    name: str
    factor: float | None
    """Times the longest task that the walltime is per task; None: the longest that the site allows."""
    in_system: int = 1000
    """Jobs that wait or run at a time, at most: the others follow as these end."""
    width: int = 1
    """Processors of a job."""
    tasks: int = 1
    """Tasks of a job."""
    node: int = 0
    """Processors that a job holds though it uses `width`; 0: no more than those."""

    def run(self, cluster: Cluster, runtimes: Array, site: Site) -> ByHand | None:
        """A bag that comes now; None: see `jobs`."""
        jobs = self.jobs(runtimes, site)
        return None if jobs is None else run_by_hand(cluster, jobs, self.in_system, site.start)

    def jobs(self, runtimes: Array, site: Site) -> list[UserJob] | None:
        """The jobs of a bag; None: no job may last as long as its tasks need.

        Where a job has whole nodes, the user fills them with tasks.
        """
        width = self.width if self.node else site.whole(self.width)
        tasks = self.tasks * math.ceil(width / self.width)
        each = math.ceil(int(runtimes.max()) * (self.factor or 0))
        rounds = math.ceil(min(tasks, len(runtimes)) / width)
        limit = site.longest if self.factor is None else min(site.longest, each * rounds + site.start)
        if limit < int(runtimes.max()) * rounds + site.start:
            return None
        parts = [runtimes[at : at + tasks].tolist() for at in range(0, len(runtimes), tasks)]
        return [
            UserJob(site.whole(max(self.node, min(width, len(part)))), width, limit, tuple(part))
            for part in parts
        ]


ARRAYS = (
    *(Policy(name=f"array-{factor:g}", factor=factor) for factor in (1.5, 3.0, 10.0)),
    Policy(name="array-max", factor=None),
    *(Policy(name=f"array-3-{most}", factor=3.0, in_system=most) for most in (100, 20)),
    Policy(name="chunk-10", factor=3.0, tasks=10),
    Policy(name="node-8", factor=3.0, width=8, tasks=8),
    Policy(name="node-8-one", factor=3.0, node=8),
    Policy(name="one-job-32", factor=3.0, width=32, tasks=1 << 40),
)


def run_by_hand(cluster: Cluster, jobs: Sequence[UserJob], in_system: int, begin: int = 0) -> ByHand:
    """Run the jobs, which are submitted in their order from now on; the cluster's clock moves on.

    A job ends with its last task; the limit is long enough for all of them.

    Args:
        begin: seconds from the start of a job until its first task begins.
    """
    submitted, held = cluster.now, 0
    following, waiting = iter(jobs), Waiting(cluster)
    lasting: dict[int, tuple[UserJob, int]] = {}  # by number in the cluster: how long it runs
    ends: list[tuple[int, int]] = []  # of those that run
    last, count = submitted, 0
    while True:
        while len(waiting) + len(ends) < in_system and (job := next(following, None)):
            lasting[waiting.submit(job.processors, job.limit)] = job, begin + _lasts(job)
            count += 1
        for number, start in waiting.started():
            job, seconds = lasting.pop(number)
            heapq.heappush(ends, (start + seconds, number))
            held += job.processors * seconds
            last = max(last, start + seconds)
        if not waiting and not ends:
            return ByHand(turnaround=last - submitted, jobs=count, held=held)
        until = ends[0][0] if ends else EVER
        if until > cluster.now:
            cluster.advance_to_change(until)
        while ends and ends[0][0] <= cluster.now:
            cluster.cancel(heapq.heappop(ends)[1])


def _lasts(job: UserJob) -> int:
    """Seconds from its start to the end of its last task."""
    free = [0] * min(job.used, max(1, len(job.tasks)))
    for seconds in job.tasks:
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)
