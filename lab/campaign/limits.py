"""Whether the limits of each site held at every look at its queue."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from lab.campaign.schedulers.cluster import Cluster, Job
from lab.campaign.verifying import Finding, Wrong
from tests.clusters.throwaway import ClusterError
from tests.e2e.watching import Watch

PENDING, PILOTS, PROCESSORS, MINUTES = 3, 60, 16, 6
"""max_pending_requests, max_pilots, max_proc and max_tr of every site; a scene of few wide requests has no
max_pilots. The last is short, because a pilot keeps its
processors until then when a slurmstepd was killed and its `srun` waits for it."""


class LimitsWatch(Watch):
    """A scheduler that is away shows nothing."""

    def __init__(self, sites: list[Cluster], most: int) -> None:
        """`most`: requests in the system of each site."""
        super().__init__()
        self._sites, self._most = sites, most
        self.looks = 0
        self.findings: list[Finding] = []

    def note(self) -> None:
        for cluster in self._sites:
            with contextlib.suppress(ClusterError, subprocess.TimeoutExpired):
                jobs = cluster.queue()
                self.looks += 1
                self.findings += exceeded(cluster.name, jobs, self._most)


def exceeded(site: str, jobs: list[Job], most: int) -> Iterator[Finding]:
    """By one look at the queue of a site."""
    formal = [job for job in jobs if not (job.leaves or job.donated)]
    if len(formal) > most:
        yield Finding(Wrong.LIMIT, f"{site}: {len(formal)} requests are in the system: {formal}")
    for job in formal:
        if job.processors > PROCESSORS or job.minutes > MINUTES:
            yield Finding(Wrong.LIMIT, f"{site}: too large: {job}")
