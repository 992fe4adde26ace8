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
_BY_SIGNAL = 100
"""`failed`: Grid Engine ended the job by a signal (sge_status(5), as the next)."""
_LIMIT = 37
_RESCHEDULED = (24, 25)
_JOB_STATES = {
    "waiting": JobState.QUEUED,
    "running": JobState.RUNNING,
    "ending": JobState.RUNNING,
    "suspended": JobState.RUNNING,
    "unknown": JobState.UNKNOWN,
}

_LONGEST = 14 * 86_400.0
"""Seconds before an end within which a job is taken to have started, where that was not seen."""
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
        self._starts: dict[str, float] = {}
        self._gone: dict[str, float] = {}
        """When a job was first seen to have ended, without a record."""

    def reports(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """See `backends.base.Backend.jobs`."""
        ours = [
            job for job in self._master.own_jobs() if job.number in ids or job.name.startswith(tag_prefix)
        ]
        live = {job.number: report_of(job) for job in ours if "z" not in job.state}
        gone = {job.number: job for job in ours if job.number not in live}
        self._starts.update({id: job.start for id, job in live.items() if job.start})
        ended = {*gone, *ids} - live.keys()
        readable = self._read_ends(ended - self._ends.keys() - self.deleted)
        for id in gone.keys() & self.deleted:
            self._ends[id] = JobReport(id=id, tag=gone[id].name, state=JobState.CANCELLED)
        unknown = {id: job for id, job in gone.items() if id not in self._ends}
        found = [*live.values(), *(self._ends[id] for id in sorted(ended & self._ends.keys()))]
        return found + [report for job in unknown.values() for report in self._unrecorded(job, readable)]

    def _read_ends(self, ids: Collection[str]) -> bool:
        """Whether we may read the records."""
        if not ids:
            return True
        earliest = min(self._starts.get(id, time.time() - _LONGEST) for id in ids)
        records = self._master.records(earliest - 60, self._master.commands.user())
        self._ends.update({job.number: ended_report(job) for job in records or () if job.number in ids})
        return records is not None

    def _unrecorded(self, job: GridJob, readable: bool) -> list[JobReport]:
        """Of a job that the qmaster knows to have ended: unknown until its record must be there.

        One that has none then was deleted while it waited. Where records cannot be read, it is missing.
        """
        since = self._gone.setdefault(job.number, time.monotonic())
        if time.monotonic() - since < _LAG:
            return [report_of(job)]
        return [JobReport(id=job.number, tag=job.name, state=JobState.CANCELLED)] if readable else []


def report_of(job: GridJob) -> JobReport:
    """Of a job in the system, or of one that has ended and is not in the records yet: of unknown state."""
    waits = state_of(job) == "waiting"
    return JobReport(
        id=job.number,
        tag=job.name,
        state=_JOB_STATES[state_of(job)],
        start=None if waits else job.start,
        processors=job.slots,
        limit=None if math.isinf(job.limit) else job.limit,
        granted=None if waits or math.isinf(job.limit) else job.limit,
        nodes=tuple(dict.fromkeys(host for _, host in job.parts)),
        reason=f"state {job.state}" if set(job.state) & set("hE") else "",
        never="Grid Engine could not start it and holds it until somebody clears its error (`qstat -j`, "
        "`qmod -cj`)"
        if "E" in job.state
        else "",
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
    if (told or job.failed == _LIMIT) and job.start and job.end - job.start >= job.limit:
        return JobState.WALLTIME
    if told:
        return JobState.CANCELLED
    if job.failed in _RESCHEDULED:
        return JobState.NODE_FAILED
    return JobState.FAILED if job.failed or job.exit_status else JobState.COMPLETED
