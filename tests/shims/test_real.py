from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.shims.real import (
    PASSED,
    RULES,
    RealCommand,
    asked,
    callers,
    leave_path,
    pass_on,
    real_is_meant,
    with_own_array,
)

IN_TASK = {"ADAPTOR_TASK_ID": "0"}


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


def test_a_command_that_calls_the_shims_again_is_not_the_real_one(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site's wrapper in front of Slurm's command: by the variable, and by the process that has set it."""
    wrapper, behind = place / "real" / "squeue", place / "behind"
    host = os.uname().nodename
    passed = {PASSED: f"{host} {os.getppid()} {wrapper}"}
    assert callers(passed) == [str(wrapper)]
    assert callers({PASSED: f"{host} {os.getppid()} /first:{wrapper}"}) == ["/first", str(wrapper)]
    for value in (f"other {os.getppid()} /x", f"{host} 4194304 /x", f"{host} x /x", "", "a"):
        assert callers({PASSED: value}) == [], "the job of a command that was passed on has it, too"
    behind.mkdir()
    monkeypatch.setenv("PATH", f"{place / 'real'}:{behind}")
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o700)
    with pytest.raises(SystemExit):
        pass_on("squeue", ["-h"], but=callers(passed))
    told = capsys.readouterr().err
    assert (
        told
        == f"adaptor: squeue: {wrapper} calls it again, and PATH has no other squeue for the scheduler's\n"
    )
    (behind / "squeue").write_text("#!/bin/sh\n")
    (behind / "squeue").chmod(0o700)
    with pytest.raises(RealCommand) as real:
        pass_on("squeue", ["-h"], but=callers(passed))
    assert real.value.path == str(behind / "squeue")


@pytest.mark.parametrize(
    ("environment", "words", "meant"),
    [
        ({}, "squeue", False),
        ({"ADAPTOR_SHIMS": "off"}, "squeue", True),
        ({"ADAPTOR_SHIMS": "on"}, "squeue", False),
        (IN_TASK, "squeue", True),
        (IN_TASK, "squeue -h -j 7", True),
        (IN_TASK, "squeue -h -j 201326592", False),
        (IN_TASK, "scancel 201326592_4", False),
        (IN_TASK, "scontrol show job=201326592", False),
        (IN_TASK, "sbatch --dependency=afterok:201326592 job.sh", True),
        ({**IN_TASK, "ADAPTOR_SHIMS": "off"}, "scancel 201326592", True),
    ],
)
def test_where_the_real_commands_are_meant(environment: dict[str, str], words: str, meant: bool) -> None:
    name, *arguments = words.split()
    assert real_is_meant(environment, name, arguments) is meant


def test_an_element_names_its_array_by_the_number_of_its_bag() -> None:
    """As $SLURM_ARRAY_JOB_ID says; the scheduler's job of that number is another one."""
    element = {"ADAPTOR_TASK_ID": "4", "SLURM_JOB_ID": "201326596", "SLURM_ARRAY_JOB_ID": "1"}
    words = ["1", "-j1", "1_4", "1_[1,3]", "11", "--jobs=1,7", "n1", "1.batch"]
    first = "201326592"
    translated = [first, f"-j{first}", f"{first}_4", f"{first}_[1,3]", "11", f"--jobs={first},7", "n1"]
    assert with_own_array(element, words) == [*translated, "1.batch"]
    assert with_own_array({"SLURM_ARRAY_JOB_ID": "1", "SLURM_JOB_ID": "3"}, words) == words, "no task"
