"""The letters, substates and exit statuses of OpenPBS in our words.

Recorded on a real OpenPBS; the numbers are those of its src/include/job.h.
"""

from __future__ import annotations

from adaptor.reports import JobState
from backends.pbs.rows import PbsJob

LETTERS = {
    "B": JobState.RUNNING,
    "E": JobState.RUNNING,
    "H": JobState.QUEUED,
    "Q": JobState.QUEUED,
    "R": JobState.RUNNING,
    "S": JobState.RUNNING,
    "T": JobState.QUEUED,
    "U": JobState.RUNNING,
    "W": JobState.QUEUED,
}
_ENDED = frozenset("FX")
_TERMINATED = 91
"""Substate of a job that was deleted."""
_BY_SCHEDULER = "terminated by Scheduler@"
"""In the comment of a job that was deleted to make room for another."""
_NEGATIVE = {
    -11: JobState.PREEMPTED,  # put back to run again
    -14: JobState.NODE_FAILED,  # a sister node was lost
    -20: JobState.NODE_FAILED,  # the first node was lost
    -29: JobState.WALLTIME,
}
"""Of a status below 0 PBS itself ended the job, or never could start it."""


def was_put_back(job: PbsJob) -> bool:
    """Whether a job of ours waits in its queue to run again.

    Only pilots on donated nodes may be put back, where the scheduler has no other way to make them yield.
    """
    return job.state in ("Q", "H", "W") and job.rerunnable and job.runs > 0


def job_state(job: PbsJob) -> JobState:
    """What becomes of one of our jobs.

    The exit status alone tells little: a deleted job that leaves in good order has 0, and so has every
    job whose node's PBS was restarted. What a pilot's workers have reported counts before it.
    """
    if was_put_back(job):
        return _NEGATIVE.get(job.exit_status or 0, JobState.PREEMPTED)
    if job.state not in _ENDED:
        return LETTERS.get(job.state, JobState.UNKNOWN)
    if job.substate == _TERMINATED:
        return JobState.PREEMPTED if _BY_SCHEDULER in job.comment else JobState.CANCELLED
    if job.exit_status is None:  # it never ran: what it depended on did not end as it should
        return JobState.CANCELLED
    if job.exit_status < 0:
        return _NEGATIVE.get(job.exit_status, JobState.FAILED)
    return JobState.COMPLETED if job.exit_status == 0 else JobState.FAILED
