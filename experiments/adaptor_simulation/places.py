"""Places of the processors that jobs of a simulated cluster hold: it only counts them.

A job gets the first processors that run no other, as schedulers fill nodes from the front. For the cluster
this changes nothing; for the donation each processor is a node, of which it says how long it has been idle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.kernels import JOB, NEED, NEVER, ORDER, Array, kernel

_TAKEN = -1  # in the place of the second in which an idle processor is planned for a job


class Places:
    """The processors of a cluster, from now on."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._owners = np.full(cluster.processors, -1, np.int64)
        """By place: the job that runs there; -1: none."""
        self._planned = np.full(cluster.processors, NEVER, np.int64)
        """Time at which the plan needs each idle processor."""
        self._running: set[int] = set()
        self._shown = np.full(cluster.processors, NEVER, np.int64)
        """Values in the reports: `_TAKEN`, or the planned time."""
        self._reports = [_report(place, NEVER) for place in range(cluster.processors)]
        self.look()

    def fork(self, cluster: Cluster) -> Places:
        """The same processors under a fork of the cluster."""
        twin: Places = object.__new__(Places)
        twin._cluster, twin._running = cluster, self._running
        twin._owners, twin._planned = self._owners.copy(), self._planned.copy()
        twin._shown, twin._reports = self._shown.copy(), self._reports.copy()
        return twin

    def look(self) -> bool:
        """Take in which jobs have ended and started since the last look; whether any has."""
        rows = self._cluster.running_rows()
        running = set(rows[:, JOB].tolist())
        if running == self._running:
            return False
        for job in self._running - running:
            self._owners[self._owners == job] = -1
        for job, need in rows[np.argsort(rows[:, ORDER])][:, [JOB, NEED]].tolist():
            if job not in self._running:
                self._owners[np.flatnonzero(self._owners < 0)[:need]] = job
        self._running = running
        return True

    def taken(self, places: Iterable[int]) -> list[int]:
        """Places among these on which a job runs."""
        return [place for place in places if self._owners[place] >= 0]

    @property
    def idle(self) -> int:
        """Processors on which no job runs."""
        return int((self._owners < 0).sum())

    def reports(self) -> tuple[NodeReport, ...]:
        """The processors as nodes, the same report where nothing has changed since the last call."""
        plan(self._owners, self._planned, *self._cluster.profile())
        shown = np.where(self._owners < 0, self._planned, _TAKEN)
        changed = np.flatnonzero(shown != self._shown)
        for place, planned in zip(changed.tolist(), shown[changed].tolist(), strict=True):
            self._reports[place] = _report(place, planned)
        self._shown = shown
        return tuple(self._reports)


def place_of(node: str) -> int:
    """The place of a processor that is reported under this name."""
    return int(node.removeprefix("cpu"))


def _report(place: int, planned: int) -> NodeReport:
    return NodeReport(
        name=f"cpu{place}",
        processors=1,
        use=NodeUse.TAKEN if planned == _TAKEN else NodeUse.IDLE,
        planned=float(planned) if 0 <= planned < NEVER else math.inf,
    )


@kernel
def plan(owners: Array, planned: Array, times: Array, free: Array) -> None:
    """Time at which the plan needs each idle processor, if jobs take the first ones: from the availability
    profile."""
    count = 0
    for place in range(len(owners)):
        if owners[place] < 0:
            planned[place] = NEVER
            count += 1
    place = 0
    for step in range(1, len(times)):
        while free[step] < count:
            while owners[place] >= 0:
                place += 1
            planned[place] = times[step]
            place += 1
            count -= 1
