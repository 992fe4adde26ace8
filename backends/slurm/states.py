"""Slurm's job states in our words (squeue and sacct of Slurm 20 to 26.05)."""

from __future__ import annotations

from adaptor.reports import JobState

JOB_STATES: dict[str, JobState] = {
    "BOOT_FAIL": JobState.NODE_FAILED,
    "CANCELLED": JobState.CANCELLED,
    "COMPLETED": JobState.COMPLETED,
    "COMPLETING": JobState.RUNNING,
    "CONFIGURING": JobState.RUNNING,
    "DEADLINE": JobState.CANCELLED,
    # Since 26.05: requeued after its node failed, and considered before all others.
    "EXPEDITING": JobState.QUEUED,
    "FAILED": JobState.FAILED,
    "NODE_FAIL": JobState.NODE_FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "PENDING": JobState.QUEUED,
    "PREEMPTED": JobState.PREEMPTED,
    "REQUEUED": JobState.QUEUED,
    "REQUEUE_FED": JobState.QUEUED,
    "REQUEUE_HOLD": JobState.QUEUED,
    "RESIZING": JobState.RUNNING,
    "RESV_DEL_HOLD": JobState.QUEUED,
    # A federation started it on a sister cluster and took it out of this one.
    "REVOKED": JobState.CANCELLED,
    "RUNNING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "SPECIAL_EXIT": JobState.QUEUED,
    "STAGE_OUT": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "TIMEOUT": JobState.WALLTIME,
}

HELD_STATES = frozenset({"REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""Queued, but only a person lets them go on."""


def job_state(text: str) -> JobState:
    """Of a word as squeue and sacct print it; sacct adds to some: `CANCELLED by 1001`, `CANCELLED+`."""
    words = text.split()
    return JOB_STATES.get(words[0].rstrip("+"), JobState.UNKNOWN) if words else JobState.UNKNOWN
