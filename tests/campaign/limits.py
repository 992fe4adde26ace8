"""Whether the limits of each site held at every look at its queue."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from types import TracebackType

from tests.campaign.verifying import Finding, Wrong
from tests.clusters.slurm import ClusterError, ThrowawaySlurm

PENDING, PROCESSORS, MINUTES = 3, 16, 6
"""max_pending_requests, max_proc and max_tr of every site. The last is short, because a pilot keeps its
processors until then when a slurmstepd was killed and its `srun` waits for it."""
DONATED_PARTITION = "scavenger"


class LimitsWatch:
    """Looks every half second, in a thread of its own, until left; a scheduler that is away shows nothing."""

    def __init__(self, sites: list[tuple[str, ThrowawaySlurm]]) -> None:
        self._sites = sites
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.looks = 0
        self.findings: list[Finding] = []

    def __enter__(self) -> LimitsWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
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
