"""Our own jobs as the daemon is told of them: from qstat, and of ended ones from qacct."""

from __future__ import annotations

import math
import time
from collections.abc import Collection

from adaptor.reports import JobReport, JobState
from backends.gridengine.reading import Master
from backends.gridengine.rows import Ended, GridJob
from backends.gridengine.state import state_of

TOLD = 128 + 12
"""How a pilot's script ends that was told to leave: as if by SIGUSR2."""
_BY_SIGNAL, _AT_LIMIT, _RESCHEDULED = 100, 37, (24, 25)
"""What `failed` says (sge_status(5)): ended by a signal, or at a limit; put back to run again."""
_LONGEST = 14 * 86_400.0
"""Seconds before an end within which a job is taken to have started."""
_ERROR = "Grid Engine could not start it, and holds it until its error is cleared (`qstat -j`, `qmod -cj`)"
_LAG = 60.0
"""Seconds after which the record of a job that has ended is there: Grid Engine writes them in batches
(`flush_time`, 15 s)."""


class Own:
    """The jobs of this user, and how those ended that we ask for."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self.deleted: set[str] = set()
        """Ids of jobs that were deleted while they waited: of these there are no records."""
        self._ends: dict[str, JobReport] = {}
        self._gone: dict[str, float] = {}
        """When a job was first seen to have ended, without a record."""

    def reports(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """See `backends.base.Backend.jobs`."""
        found = self._master.own_jobs()
        ours = [job for job in found if job.number in ids or job.name.startswith(tag_prefix)]
        live = {job.number: report_of(job) for job in ours if "z" not in job.state}
        gone = {job.number: job for job in ours if job.number not in live}
        ended = {*gone, *ids} - live.keys()
        readable = self._read_ends(ended - self._ends.keys())
        for id, job in gone.items():
            if id not in self._ends:
                since = self._gone.setdefault(job.number, time.monotonic())
                if job.number in self.deleted or (readable and time.monotonic() - since > _LAG):
                    self._ends[job.number] = JobReport(id=job.number, tag=job.name, state=JobState.CANCELLED)
        known = {**live, **{id: report_of(gone[id]) for id in gone.keys() - self._ends.keys()}}
        return [*known.values(), *(self._ends[id] for id in sorted(ended & self._ends.keys()))]

    def _read_ends(self, ids: Collection[str]) -> bool:
        """Whether we may read the records."""
        if not ids:
            return True
        records = self._master.records(time.time() - _LONGEST, self._master.commands.user())
        self._ends.update({job.number: ended_report(job) for job in records or () if job.number in ids})
        return records is not None


def report_of(job: GridJob) -> JobReport:
    """Of a job in the system, or of one that has ended and is not in the records yet: of unknown state."""
    state, asked = state_of(job), None if math.isinf(job.limit) else job.limit
    waits = state == "waiting"
    return JobReport(
        id=job.number,
        tag=job.name,
        state={"waiting": JobState.QUEUED, "unknown": JobState.UNKNOWN}.get(state, JobState.RUNNING),
        start=None if waits else job.start,
        processors=job.slots,
        limit=asked,
        granted=None if waits else asked,
        nodes=tuple(dict.fromkeys(host for _, host in job.parts)),
        reason=f"state {job.state}" if set(job.state) & set("hE") else "",
        never=_ERROR if "E" in job.state else "",
    )


def ended_report(job: Ended) -> JobReport:
    """Of a record."""
    return JobReport(
        id=job.number,
        tag=job.name,
        state=_end(job),
        start=job.start or None,
        end=job.end or None,
        processors=job.slots,
        nodes=(job.host,),
        reason=f"failed {job.failed}, exit status {job.exit_status}" if job.failed else "",
    )


def _end(job: Ended) -> JobState:
    """Grid Engine does not say who ended a job: one that had its time has met its limit."""
    told = job.failed == _BY_SIGNAL or job.exit_status == TOLD
    if (told or job.failed == _AT_LIMIT) and job.start and job.end - job.start >= job.limit:
        return JobState.WALLTIME
    if told:
        return JobState.CANCELLED
    if job.failed in _RESCHEDULED:
        return JobState.NODE_FAILED
    return JobState.FAILED if job.failed or job.exit_status else JobState.COMPLETED
