"""Whether the limits of each site held at every look at its queue."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from tests.campaign.verifying import Finding, Wrong
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.throwaway import ClusterError
from tests.e2e.watching import Watch

PENDING, PROCESSORS, MINUTES = 3, 16, 6
"""max_pending_requests, max_proc and max_tr of every site. The last is short, because a pilot keeps its
processors until then when a slurmstepd was killed and its `srun` waits for it."""
DONATED_PARTITION = "scavenger"


class LimitsWatch(Watch):
    """A scheduler that is away shows nothing."""

    def __init__(self, sites: list[tuple[str, ThrowawaySlurm]]) -> None:
        super().__init__()
        self._sites = sites
        self.looks = 0
        self.findings: list[Finding] = []

    def note(self) -> None:
        for name, cluster in self._sites:
            with contextlib.suppress(ClusterError, subprocess.TimeoutExpired):
                text = cluster.run(["squeue", "-h", "-o", "%j|%T|%C|%l|%P"], timeout=10)
                self.looks += 1
                self.findings += exceeded(name, text)


def exceeded(site: str, queue: str) -> Iterator[Finding]:
    """By one output of `squeue -h -o %j|%T|%C|%l|%P`."""
    rows = [line.split("|") for line in queue.splitlines()]
    formal = [
        row
        for row in rows
        if row[0].startswith("adaptor-") and row[1] != "COMPLETING" and row[4] != DONATED_PARTITION
    ]
    if len(formal) > PENDING:
        yield Finding(Wrong.LIMIT, f"{site}: {len(formal)} requests are in the system: {formal}")
    for name, _, processors, limit, _ in formal:
        if int(processors) > PROCESSORS or _minutes(limit) > MINUTES:
            yield Finding(Wrong.LIMIT, f"{site}: {name} has {processors} processors for {limit}")


def _minutes(limit: str) -> float:
    """Of Slurm's [[days-]hours:]minutes:seconds."""
    days, _, clock = limit.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return 1440 * int(days or 0) + seconds / 60
