"""Slurm's reasons why a job waits: which mean that it will never start, which that nothing is kept for it.

The words are those of `squeue -o %r` (squeue(1), "JOB REASON CODES", and Slurm's page on resource
limits). Limits of one job are never met by waiting; limits of a user, an account or a group are, once
other jobs have ended.
"""

from __future__ import annotations

import re
from functools import lru_cache

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


@lru_cache(maxsize=1000)
def job_state(text: str) -> JobState:
    """Of a word as squeue and sacct print it; sacct adds to some: `CANCELLED by 1001`, `CANCELLED+`."""
    words = text.split()
    return JOB_STATES.get(words[0].rstrip("+"), JobState.UNKNOWN) if words else JobState.UNKNOWN


_NEVER = {
    "PartitionTimeLimit": "it asks for more time than the partition allows",
    "PartitionNodeLimit": "it asks for more nodes, or fewer, than the partition allows",
    "PartitionMaxNodes": "it asks for more nodes than the partition allows",
    "PartitionMinNodes": "it asks for fewer nodes than the partition allows",
    "PartitionConfig": "the partition does not allow a request of this shape",
    "MaxCPUsPerNode": "it asks for more processors of a node than the partition allows",
    "MaxMemPerLimit": "it asks for more memory than the partition allows",
    "BadConstraints": "no node is as it asks for",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
    "AccountNotAllowed": "its account may not use the partition",
    "QOSNotAllowed": "its QOS may not use the partition",
    "AssociationTimeLimit": "it asks for more time than the account allows",
    "QOSTimeLimit": "it asks for more time than its QOS allows",
    "DependencyNeverSatisfied": "it depends on a job that did not end as it should",
    "ReservationDeleted": "its reservation was deleted",
    "ReservationInvalid": "its reservation is not valid",
    "DeadLine": "it cannot end before its deadline",
    "JobHoldMaxRequeue": "it was put back too often and is held",
    "launch failed requeued held": "it could not be launched and is held",
}
_LIMIT_OF_ONE_JOB = re.compile(
    r"(?P<who>QOS|Assoc)(Max\w*(PerJob|PerNode)\w*|Min\w+)",
)
_WHO = {"QOS": "its QOS", "Assoc": "the account"}

_NOTHING_IS_KEPT = frozenset(
    {
        "BeginTime",
        "Dependency",
        "JobArrayTaskLimit",
        "JobHeldAdmin",
        "JobHeldUser",
        "AssociationJobLimit",
        "AssociationResourceLimit",
        "QOSJobLimit",
        "QOSResourceLimit",
        "QOSUsageThreshold",
        "AccountingPolicy",
        "PartitionDown",
        "PartitionInactive",
        "Reservation",
    }
)
_LIMIT_OF_MANY_JOBS = re.compile(r"(QOS|Assoc)(Grp|Max)\w*|Max\w+Per(Account|User)")


def never(state: str, reason: str) -> str:
    """Why a queued job can never start as it stands, one sentence; empty when it can."""
    word = _words(reason)[0]
    problem = _NEVER.get(word)
    limit = _LIMIT_OF_ONE_JOB.fullmatch(word)
    if problem is None and limit:
        problem = f"it goes beyond a limit that {_WHO[limit['who']]} sets for one job"
    if problem is None and state in HELD_STATES:
        problem = "Slurm holds it until a person releases it"
    said = state if word in ("", "None") else word
    return f"{problem} ({said})" if problem else ""


@lru_cache(maxsize=1000)
def is_considered(state: str, reason: str) -> bool:
    """Whether the scheduler looks for a place for this queued job at the moment."""
    if never(state, reason):
        return False
    return not any(word in _NOTHING_IS_KEPT or _LIMIT_OF_MANY_JOBS.fullmatch(word) for word in _words(reason))


def _words(reason: str) -> list[str]:
    return [word.strip() for word in reason.strip("()").split(",")]
