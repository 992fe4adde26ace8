"""Slurm's words for states and reasons."""

from __future__ import annotations

import pytest

from adaptor.reports import TURN, Hold, JobState, Remedy, Wait
from backends.slurm.reasons import JOB_STATES, is_considered, job_state, never, refused_remedy, wait_of

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
        "(user env retrieval failed requeued held)",
        "Job's QOS not permitted to use this partition",
        "(Job's QOS not permitted to use this partition (batch allows a,short not normal))",
        "Job's account not permitted to use this partition (batch denies phys including phys)",
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


@pytest.mark.parametrize(
    ("reason", "hold", "remedy"),
    [
        ("AssocGrpCpuLimit", Hold.LIMIT, Remedy.NARROWER),
        ("QOSMaxCpuPerUserLimit", Hold.LIMIT, Remedy.NARROWER),
        ("QOSMaxJobsPerUserLimit", Hold.LIMIT, Remedy.OTHER),
        ("AssocMaxJobsLimit", Hold.LIMIT, Remedy.OTHER),
        ("AssocGrpCPURunMinutesLimit", Hold.LIMIT, Remedy.SMALLER),
        ("AssocGrpCPUMinutesLimit", Hold.SPENT, Remedy.SMALLER),
        ("QOSGrpCPUMinutesLimit", Hold.SPENT, Remedy.SMALLER),
        ("AssocGrpGRESMinutes", Hold.SPENT, Remedy.SMALLER),
        ("AssocGrpWallLimit", Hold.SPENT, Remedy.SMALLER),
        ("AccountingPolicy", Hold.LIMIT, Remedy.NARROWER),
        ("JobHeldUser", Hold.ITS_OWN, Remedy.OTHER),
        ("BeginTime", Hold.ITS_OWN, Remedy.OTHER),
        ("Licenses", Hold.NONE, Remedy.OTHER),
        ("ReqNodeNotAvail, UnavailableNodes:n1", Hold.NONE, Remedy.OTHER),
        ("SomethingOfTomorrow", Hold.NONE, Remedy.OTHER),
    ],
)
def test_what_a_wait_says_and_what_would_help(reason: str, hold: Hold, remedy: Remedy) -> None:
    found = wait_of("PENDING", reason)
    assert reason.split(",")[0] in found.said
    assert (found.hold, found.remedy) == (hold, remedy)


@pytest.mark.parametrize("reason", ["None", "(Priority)", "Resources", ""])
def test_a_turn_in_the_queue_needs_no_words(reason: str) -> None:
    assert wait_of("PENDING", reason) == TURN


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("PartitionTimeLimit", Remedy.SHORTER),
        ("QOSMaxWallDurationPerJobLimit", Remedy.SHORTER),
        ("PartitionConfig", Remedy.SMALLER),
        ("QOSMaxCpuMinutesPerJobLimit", Remedy.SMALLER),
        ("MaxCPUsPerNode", Remedy.NARROWER),
        ("QOSMaxCpuPerJobLimit", Remedy.NARROWER),
        ("QOSMinCpuNotSatisfied", Remedy.OTHER),
        ("AccountNotAllowed", Remedy.OTHER),
    ],
)
def test_what_would_help_a_request_that_never_starts(reason: str, remedy: Remedy) -> None:
    assert wait_of("PENDING", reason) == Wait(remedy=remedy)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (
            "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Job violates accounting/QOS policy",
            Remedy.OTHER,
        ),
        ("sbatch: error: QOSMaxWallDurationPerJobLimit", Remedy.SHORTER),
        ("sbatch: error: QOSMaxCpuPerJobLimit", Remedy.NARROWER),
        ("sbatch: error: Requested time limit is invalid (missing or exceeds some limit)", Remedy.SHORTER),
        ("sbatch: error: Requested node configuration is not available", Remedy.NARROWER),
        ("sbatch: error: Invalid account or account/partition combination specified", Remedy.OTHER),
        ("sbatch: error: Batch job submission failed: Invalid user id", Remedy.OTHER),
        ("sbatch: error: lab policy: ask the helpdesk", Remedy.SMALLER),
        ("sbatch: error: jobs of this lab last ten minutes\n… Unspecified error", Remedy.SMALLER),
        ("sbatch: error: every job must name an account (-A)\n… Unspecified error", Remedy.OTHER),
        ("sbatch: error: account chem may use 4 nodes\n… Unspecified error", Remedy.SMALLER),
    ],
)
def test_what_would_help_a_request_that_is_refused(said: str, remedy: Remedy) -> None:
    assert refused_remedy(said) is remedy


def test_a_held_state_says_so() -> None:
    assert "SPECIAL_EXIT" in never("SPECIAL_EXIT", "None")
