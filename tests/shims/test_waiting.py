from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.shims import waiting
from adaptor.shims.rules import DependencyError
from adaptor.shims.waiting import wait_for_real

COMMANDS = {
    "squeue": """[ -e asked ] && exit 1; touch asked; echo 7; exit 0""",
    "sacct": """case $5 in --jobs=7) echo COMPLETED;; --jobs=8) echo "CANCELLED by 0";; esac""",
    "scontrol": """[ $3 = 9 ] && echo "JobId=9 JobState=FAILED Reason=None"; exit 0""",
}


@pytest.fixture(autouse=True)
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Job 7 is there at the first look."""
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(waiting, "PAUSE", 0.0)


def test_the_command_waits_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    wait_for_real(["7"], ["8"])
    assert capsys.readouterr().err.startswith("adaptor: waits until jobs 7, 8 of the scheduler have ended")


@pytest.mark.parametrize(
    ("job", "how"), [("8", "is CANCELLED"), ("9", "is FAILED"), ("10", "does not say how")]
)
def test_a_job_that_did_not_complete(job: str, how: str) -> None:
    with pytest.raises(DependencyError, match=f"job {job} .*{how}"):
        wait_for_real([job], [])


def test_nothing_is_asked_where_tasks_wait_for_tasks(tmp_path: Path) -> None:
    wait_for_real([], [])
    assert not (tmp_path / "asked").exists()
