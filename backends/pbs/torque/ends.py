"""What Torque's letters and exit statuses mean in our words."""

from __future__ import annotations

from adaptor.reports import JobState
from backends.pbs.rows import PbsJob

TOLD = 143
"""The exit status of our own script where it was told to end: 128 + SIGTERM, as the shell would say."""

_LETTERS = {
    "Q": JobState.QUEUED,
    "H": JobState.QUEUED,
    "W": JobState.QUEUED,
    "T": JobState.QUEUED,  # on its way to another server
    "R": JobState.RUNNING,
    "S": JobState.RUNNING,
    "E": JobState.RUNNING,
}
"""pbs_job_attributes(7B), `job_state`; C is judged by `_ended`."""

_OVER_WALLTIME = -11
"""JOB_EXEC_OVERLIMIT_WT (Torque 6); older ones only signal the job."""
_NODE_FAILED = range(-6, -3)
"""JOB_EXEC_INITABT to JOB_EXEC_INITRMG: the node's daemon was started anew and found the job there."""
_SIGNALLED = frozenset({TOLD, 256 + 15, 256 + 9})
"""SIGTERM, and the SIGKILL that follows after `kill_delay`: by qdel, an operator, the scheduler or because
the walltime was over; the last is told by the clock. pbs_mom runs our script under a login shell, which
SIGTERM mostly ends before the script does: then its status counts."""


def state_of(job: PbsJob) -> JobState:
    """Torque's states; of Slurm's wrapper those that it has."""
    if job.state != "C":
        return _LETTERS.get(job.state, JobState.UNKNOWN)
    return _ended(job)


def _ended(job: PbsJob) -> JobState:
    status = job.exit_status
    if job.start is None and not job.nodes and (status is None or status in _SIGNALLED or status == 0):
        return JobState.CANCELLED  # deleted while it waited
    if status == _OVER_WALLTIME:
        return JobState.WALLTIME
    if status is None or status in _SIGNALLED:
        return _from_outside(job)
    if status == 0:
        return JobState.COMPLETED
    return JobState.NODE_FAILED if status in _NODE_FAILED else JobState.FAILED


def _from_outside(job: PbsJob) -> JobState:
    """It did not end by itself, or nobody noted how: only the clock can tell a walltime that was over."""
    if job.start is not None and job.end is not None and job.end - job.start >= job.limit - 1:
        return JobState.WALLTIME
    return JobState.UNKNOWN if job.exit_status is None else JobState.CANCELLED
