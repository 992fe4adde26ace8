"""Which job runs the daemon: the one that started last, and no other one."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from adaptor.daemon.clock import system_clock
from adaptor.daemon.jobs.record import (
    FILE,
    DaemonJobs,
    check_no_job,
    claim,
    following,
    forget_jobs,
    hands_over,
    read_jobs,
    replaced,
    write_jobs,
)
from adaptor.daemon.lock import LOCK
from adaptor.errors import AdaptorError, UsageError

JOBS = DaemonJobs(
    series="ab12", site="hpc", walltime=3600, memory=2**29, submitted=3, current=1, current_job="7",
    next_job="9",
)  # fmt: skip


def claimed(directory: Path, number: int, series: str = "ab12", job: str = "") -> str:
    return claim(directory, series, number, job=job, host="n3", until=1000.0)


@pytest.fixture
def noted(tmp_path: Path) -> Path:
    write_jobs(tmp_path, JOBS)
    return tmp_path


def test_what_is_written_is_read_again_by_its_owner_alone(noted: Path) -> None:
    assert read_jobs(noted) == JOBS
    assert (noted / FILE).stat().st_mode & 0o777 == 0o600
    forget_jobs(noted)
    assert read_jobs(noted) is None
    forget_jobs(noted)


def test_the_job_that_started_last_continues_and_all_others_end(noted: Path) -> None:
    assert not claimed(noted, 3)
    assert not replaced(noted, "ab12.3")
    assert "continues in job" in replaced(noted, "ab12.1")
    assert "on n3" in replaced(noted, ""), "one that was started by hand"


def test_a_job_that_comes_too_late_does_nothing(noted: Path) -> None:
    assert not claimed(noted, 3)
    assert "job 3 runs the daemon already" in claimed(noted, 2)
    assert "job 3 runs the daemon already" in claimed(noted, 3), "another one of the same number"


def test_of_two_that_start_at_once_one_stays(noted: Path) -> None:
    """Both have read the record before either has written it."""
    before = JOBS
    for number in (3, 2):
        write_jobs(noted, msgspec.structs.replace(before, current=number, host="n3"))
    staying = [number for number in (2, 3) if not replaced(noted, f"ab12.{number}")]
    assert len(staying) == 1


def test_a_job_of_another_folder_or_of_an_earlier_series_says_why_it_does_nothing(tmp_path: Path) -> None:
    assert "this node, n3, has another folder of this name" in claimed(tmp_path, 1)
    write_jobs(tmp_path, JOBS)
    assert "submitted again" in claimed(tmp_path, 4, series="other")


def test_a_daemon_in_a_job_ends_when_the_record_is_gone(tmp_path: Path) -> None:
    assert "was stopped" in replaced(tmp_path, "ab12.1")
    assert not replaced(tmp_path, ""), "one that runs in no job goes on"


def test_a_record_that_cannot_be_read_ends_no_daemon(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"{")
    (tmp_path / FILE).chmod(0o600)
    assert not replaced(tmp_path, "ab12.1")
    with pytest.raises(AdaptorError, match=r"damaged.*adaptor daemon stop"):
        read_jobs(tmp_path)


def test_a_record_of_a_newer_version_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b'{"format": 99}')
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(AdaptorError, match="newer version"):
        read_jobs(tmp_path)


def test_before_the_first_job_starts_a_daemon_by_hand_goes_on(tmp_path: Path) -> None:
    write_jobs(tmp_path, msgspec.structs.replace(JOBS, current=0))
    assert not replaced(tmp_path, "")


def test_tags_tell_the_jobs_of_a_series() -> None:
    assert JOBS.number_of(JOBS.tag(12)) == 12
    for tag in ("adaptor-daemon-other.3", "adaptor-daemon-ab12.x", "job"):
        assert JOBS.number_of(tag) == 0


def test_what_follows_is_said(noted: Path) -> None:
    assert following(JOBS) == "job 9 at hpc runs the next one when the scheduler starts it"
    with pytest.raises(UsageError, match="runs as a job at hpc"):
        check_no_job(noted, "start one here")
    check_no_job(noted / "elsewhere", "start one here")


def test_a_hand_over_takes_seconds_a_wait_in_the_queue_does_not_count(noted: Path) -> None:
    assert not hands_over(noted), "no daemon has run yet"
    lock = noted / LOCK
    lock.touch()
    assert hands_over(noted)
    os.utime(lock, (system_clock() - 60, system_clock() - 60))
    assert not hands_over(noted), "commands that read answer from the journal at once"
    forget_jobs(noted)
    lock.touch()
    assert not hands_over(noted), "the daemon runs as no job"
