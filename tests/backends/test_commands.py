"""Commands that hang, fail, are missing or are led astray by the user's environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from backends.base import SchedulerError
from backends.commands import CommandHung, Commands
from backends.slurm.questions import asking_environment, submitting_environment
from tests.backends.expiring import expired, is_written

Fake = Callable[[str, str], Path]
OWN = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/u",
    "LC_TIME": "de_DE",
    "SLURM_CONF": "/etc/x.conf",
    "SLURM_JWT": "secret",
    "SLURM_JOB_ID": "12",
    "SQUEUE_FORMAT": "%i",
    "SBATCH_PARTITION": "night",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "MODULEPATH": "/opt/modules",
    "BASH_FUNC_module%%": "() { eval; }",
}


def commands(timeout: float = 20.0) -> Commands:
    return Commands(asking_environment, timeout)


def test_options_of_the_user_do_not_reach_a_question() -> None:
    environment = asking_environment(OWN)
    assert environment["SLURM_CONF"] == "/etc/x.conf"
    assert environment["SLURM_TIME_FORMAT"] == "%s"
    assert not {"SLURM_JOB_ID", "SQUEUE_FORMAT", "SBATCH_PARTITION"} & environment.keys()


def test_a_pilot_inherits_what_a_script_needs_and_no_secret() -> None:
    environment = submitting_environment(OWN)
    assert environment.keys() == {
        "PATH",
        "HOME",
        "LC_TIME",
        "SLURM_CONF",
        "MODULEPATH",
        "BASH_FUNC_module%%",
    }


def test_a_command_sees_exactly_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUEUE_FORMAT", "nonsense")
    seen = Commands(lambda _own: {"PATH": "/usr/bin:/bin", "COLOUR": "blue"}, 20).ask("env").split()
    assert sorted(seen) == ["ADAPTOR_SHIMS=off", "COLOUR=blue", "PATH=/usr/bin:/bin"]


def test_a_failure_is_told_with_its_words(fake: Fake) -> None:
    fake("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(SchedulerError, match=r"squeue failed with status 1: slurm_load_jobs error: Unable"):
        commands().ask("squeue")
    assert commands().run("squeue").status == 1


def test_a_missing_command_is_named() -> None:
    with pytest.raises(SchedulerError, match="no-such-command: cannot be run here"):
        commands().ask("no-such-command")


def test_output_that_is_not_text_does_no_harm(fake: Fake) -> None:
    fake("squeue", r"printf '\xff\xfe ok'")
    assert commands().ask("squeue").endswith("ok")


def hang(limit: int) -> None:
    with pytest.raises(CommandHung, match=f"squeue did not answer within {limit}s"):
        commands(limit).ask("squeue")


def test_a_child_that_left_the_group_does_not_hold_us_up(fake: Fake, tmp_path: Path) -> None:
    child = tmp_path / "child"
    fake("squeue", f"setsid bash -c 'echo $$ > {child}; exec sleep 300' & wait")
    expired(hang, lambda _: is_written(child))
    psutil.Process(int(child.read_text())).kill()
