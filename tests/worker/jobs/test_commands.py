"""The commands that tasks find in front of Slurm's: each by itself, as a task calls it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from adaptor.batch_script import job_number
from adaptor.worker.jobs.commands import NodeCommands

OURS = {"SLURM_JOB_ID": str(job_number(1, 0)), "ADAPTOR_TASK_ID": "0", "ADAPTOR_CPUS": "2"}


@pytest.fixture
def commands(tmp_path: Path) -> NodeCommands:
    """With Slurm's own commands behind them, which say that they were called."""
    real = tmp_path / "real"
    real.mkdir()
    for name in ("srun", "squeue", "scancel"):
        (real / name).write_text(f'#!/bin/sh\necho real {name} "$@"\n')
        (real / name).chmod(0o700)
    return NodeCommands(tmp_path / "bin", {"SLURM_JOB_ID": "77"}, tmp_path / "state")


def said(commands: NodeCommands, line: str, expect: int = 0, **variables: str) -> str:
    folder = commands.ready()
    environment = {"PATH": f"{folder}:{folder.parent / 'real'}:/usr/bin:/bin", **variables}
    environment["BASH_FUNC_srun%%"] = commands.function()
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == expect, done.stderr
    return done.stdout + done.stderr


def test_srun_starts_processes_by_the_standard_library_alone(commands: NodeCommands) -> None:
    assert said(commands, "srun echo said", **OURS) == "said\n"
    assert said(commands, "srun -n2 echo said", **OURS) == "said\nsaid\n"


def test_steps_share_processors_by_a_file_that_no_worker_can_leave_behind(
    commands: NodeCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    steps = "for each in 1 2; do srun -c2 sh -c 'echo begins; sleep 0.2; echo ends' & done; wait"
    assert said(commands, steps, **OURS).split() == ["begins", "ends"] * 2
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("job", [{}, {"SLURM_JOB_ID": "4711"}], ids=["no job", "a job of Slurm's"])
def test_outside_of_tasks_srun_is_slurm_s(commands: NodeCommands, job: dict[str, str]) -> None:
    """A job that a task submits inherits PATH, and the function."""
    assert said(commands, "srun -n2 hostname", **job) == "real srun -n2 hostname\n"
    (commands.ready() / "srun").unlink()
    assert said(commands, "srun -n2 hostname", **job) == "real srun -n2 hostname\n", "its pilot has ended"


def test_on_several_nodes_slurm_s_srun_starts_a_step(commands: NodeCommands) -> None:
    nodes = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n1,n2"}
    told = said(commands, "srun hostname", **OURS, **nodes)
    assert told.startswith("real srun --jobid=77 --overlap --whole --mem=0 --cpu-bind=none --nodes=2")


def test_srun_says_slurm_s_version(commands: NodeCommands) -> None:
    assert said(commands, "srun --version", **OURS) == "real srun --version\n"


def test_jobs_of_the_scheduler_are_slurm_s(commands: NodeCommands) -> None:
    assert said(commands, "squeue -h -j 7; scancel 7", **OURS) == "real squeue -h -j 7\nreal scancel 7\n"


def test_where_the_daemon_is_far_nothing_is_done(commands: NodeCommands) -> None:
    """As at a site over ssh."""
    told = said(commands, "scancel $SLURM_JOB_ID", expect=1, **OURS)
    assert told.startswith("adaptor: scancel: the daemon of this task is on another machine")
