from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.shims.real import RULES, asked, leave_path, pass_on, real_is_meant


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of shims, and a folder `real`, in PATH."""
    (tmp_path / RULES).write_text("{}")
    (tmp_path / "squeue").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "squeue").chmod(0o700)
    (tmp_path / "real").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:{tmp_path / 'real'}")
    leave_path()
    return tmp_path


def test_folders_of_shims_leave_the_path(place: Path) -> None:
    assert os.environ["PATH"] == str(place / "real")


def test_without_a_scheduler_its_jobs_are_errors(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        pass_on("sbatch", ["job.sh"], "--time is 5h")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "adaptor: --time is 5h; no sbatch of a scheduler is in PATH\n"


def test_answers_of_a_real_command(place: Path) -> None:
    assert asked("squeue", ["-h"]) == ("", 0), "there is none"
    (place / "real" / "squeue").write_text('#!/bin/sh\necho "$@"; exit 3\n')
    (place / "real" / "squeue").chmod(0o700)
    assert asked("squeue", ["-h", "a b"]) == ("-h a b\n", 3)


@pytest.mark.parametrize(
    ("environment", "meant"),
    [
        ({}, False),
        ({"ADAPTOR_TASK_ID": "0"}, True),
        ({"ADAPTOR_SHIMS": "off"}, True),
        ({"ADAPTOR_SHIMS": "on"}, False),
    ],
)
def test_where_the_real_commands_are_meant(environment: dict[str, str], meant: bool) -> None:
    assert real_is_meant(environment) is meant
