"""Slurm's words for states and reasons."""

from __future__ import annotations

import pytest

from adaptor.reports import JobState
from backends.slurm.reasons import JOB_STATES, is_considered, job_state, never

ALL = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "CONFIGURING",
    "COMPLETING",
    "DEADLINE",
    "EXPEDITING",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PENDING",
    "PREEMPTED",
    "RUNNING",
    "RESV_DEL_HOLD",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "REQUEUED",
    "RESIZING",
    "REVOKED",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
    "TIMEOUT",
]
"""squeue(1), "JOB STATE CODES", and `squeue -t help`; EXPEDITING came with 26.05."""
ENDS = {
    "BOOT_FAIL": JobState.NODE_FAILED,
    "CANCELLED": JobState.CANCELLED,
    "COMPLETED": JobState.COMPLETED,
    "DEADLINE": JobState.CANCELLED,
    "FAILED": JobState.FAILED,
    "NODE_FAIL": JobState.NODE_FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "PREEMPTED": JobState.PREEMPTED,
    "REVOKED": JobState.CANCELLED,
    "TIMEOUT": JobState.WALLTIME,
}
QUEUED = {"EXPEDITING", "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}


def test_all_states_are_known() -> None:
    assert len(ALL) == 25
    assert set(ALL) == JOB_STATES.keys()


@pytest.mark.parametrize("word", ALL)
def test_every_state_has_its_meaning(word: str) -> None:
    expected = ENDS.get(word, JobState.QUEUED if word in QUEUED else JobState.RUNNING)
    assert job_state(word) is expected
    assert (job_state(word).ended is not None) == (word in ENDS)


@pytest.mark.parametrize("word", ["CANCELLED by 1001", "CANCELLED+"])
def test_additions_of_sacct(word: str) -> None:
    assert job_state(word) is JobState.CANCELLED


@pytest.mark.parametrize("word", ["", "NEW_STATE", "completed"])
def test_an_unknown_word_is_no_end(word: str) -> None:
    assert job_state(word) is JobState.UNKNOWN
    assert job_state(word).ended is None


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionTimeLimit",
        "PartitionNodeLimit",
        "PartitionConfig",
        "QOSMaxCpuPerJobLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSMaxCpuPerNode",
        "QOSMinCpuNotSatisfied",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxWallDurationPerJobLimit",
        "BadConstraints",
        "InvalidAccount",
        "InvalidQOS",
        "(launch failed requeued held)",
        "DependencyNeverSatisfied",
        "ReservationInvalid",
    ],
)
def test_reasons_that_waiting_does_not_cure(reason: str) -> None:
    sentence = never("PENDING", reason)
    assert reason.strip("()") in sentence
    assert not is_considered("PENDING", reason)


@pytest.mark.parametrize(
    "reason",
    [
        "QOSMaxCpuPerUserLimit",
        "QOSMaxJobsPerUserLimit",
        "QOSGrpCpuLimit",
        "AssocGrpNodeLimit",
        "AssocMaxJobsLimit",
        "MaxCpuPerAccount",
        "MaxCpuRunMinsPerUser",
        "JobHeldAdmin",
        "JobHeldUser",
        "BeginTime",
        "JobArrayTaskLimit,BeginTime",
        "Dependency",
        "PartitionDown",
    ],
)
def test_reasons_that_only_time_cures_keep_no_place(reason: str) -> None:
    assert never("PENDING", reason) == ""
    assert not is_considered("PENDING", reason)


@pytest.mark.parametrize(
    "reason",
    [
        "None",
        "Priority",
        "Resources",
        "ReqNodeNotAvail, UnavailableNodes:n1",
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    ],
)
def test_reasons_of_jobs_that_the_scheduler_considers(reason: str) -> None:
    assert never("PENDING", reason) == ""
    assert is_considered("PENDING", reason)


def test_a_held_state_says_so() -> None:
    assert "SPECIAL_EXIT" in never("SPECIAL_EXIT", "None")
