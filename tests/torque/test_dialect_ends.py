"""Torque's letters and exit statuses in our words."""

from __future__ import annotations

import pytest

from adaptor.reports import JobState
from adaptor_torque.dialect import TOLD, state_of
from backends.pbs.rows import PbsJob


def job(state: str, **known: float | int | None) -> PbsJob:
    return PbsJob(id="1.s", tag="t", owner="ada", state=state, limit=600, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("letter", "state"),
    [
        ("Q", JobState.QUEUED),
        ("H", JobState.QUEUED),
        ("W", JobState.QUEUED),
        ("T", JobState.QUEUED),
        ("R", JobState.RUNNING),
        ("S", JobState.RUNNING),
        ("E", JobState.RUNNING),
        ("?", JobState.UNKNOWN),
        ("", JobState.UNKNOWN),
    ],
)
def test_jobs_in_the_system(letter: str, state: JobState) -> None:
    assert state_of(job(letter)) is state


@pytest.mark.parametrize(
    ("status", "ran", "state"),
    [
        (0, 60, JobState.COMPLETED),
        (0, 600, JobState.COMPLETED),
        (1, 60, JobState.FAILED),
        (127, 60, JobState.FAILED),
        (256 + 11, 60, JobState.FAILED),  # the script itself crashed
        (-1, 0, JobState.FAILED),
        (-4, 60, JobState.NODE_FAILED),
        (-6, 60, JobState.NODE_FAILED),
        (-10, 60, JobState.FAILED),  # more memory than it asked for
        (-11, 615, JobState.WALLTIME),
        (TOLD, 60, JobState.CANCELLED),
        (TOLD, 612, JobState.WALLTIME),
        (271, 60, JobState.CANCELLED),
        (271, 645, JobState.WALLTIME),
        (265, 60, JobState.CANCELLED),
        (265, 600, JobState.WALLTIME),
        (None, 60, JobState.UNKNOWN),
        (None, 660, JobState.WALLTIME),
    ],
)
def test_ends(status: int | None, ran: float, state: JobState) -> None:
    assert state_of(job("C", start=1000.0, end=1000.0 + ran, exit_status=status)) is state


@pytest.mark.parametrize("status", [None, 0, 271])
def test_a_job_that_never_started_was_cancelled(status: int | None) -> None:
    assert state_of(job("C", end=1000.0, exit_status=status)) is JobState.CANCELLED


def test_a_job_that_could_not_be_started_has_failed() -> None:
    assert state_of(job("C", end=1000.0, exit_status=-1)) is JobState.FAILED
