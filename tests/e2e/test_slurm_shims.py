"""Programs that know Slurm alone, unchanged, with the shims in PATH, on a real Slurm.

`python -m lab.campaign.shim_clients` compares more of them, with times.
"""

from __future__ import annotations

import os
import sys

import pytest

from adaptor.defaults import FIRST_JOB
from lab.campaign.shim_clients import SITE
from lab.campaign.shim_programs import CLIENTS
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab
from tests.living import run_text, until

pytestmark = pytest.mark.slurm
JOBS = 12


@pytest.mark.parametrize(
    "client", ["a loop of sbatch", pytest.param("submitit map_array", marks=pytest.mark.nightly)]
)
def test_small_jobs_of_a_client_take_few_jobs(slurm: ThrowawaySlurm, lab: Lab, client: str) -> None:
    lab.configure(SITE)
    lab.run("shims", lab.root / "bin", "--always")
    path = f"{lab.root / 'bin'}:{os.environ['PATH']}"
    environment = {**lab.environment, "PATH": path, "ADAPTOR_CONFIG": str(lab.config)}
    before = slurm.last_job()
    done = run_text(CLIENTS[client].write(lab.work, JOBS, sys.executable), cwd=lab.work, env=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{lab.log()}"
    assert len(list(lab.work.glob("*.done"))) == JOBS
    assert slurm.last_job() - before < JOBS
    large = run_text(
        ["sbatch", "--parsable", "--time=2:00:00", "-o", "/dev/null", "--wrap", "true"],
        cwd=lab.work,
        env=environment,
        check=True,
    )
    assert int(large.stdout) < 100_000_000


def test_a_job_that_would_start_now_goes_to_slurm_and_one_that_would_wait_becomes_a_task(
    slurm: ThrowawaySlurm, lab: Lab
) -> None:
    lab.configure(SITE)
    lab.run("shims", lab.root / "bin")
    path = f"{lab.root / 'bin'}:{os.environ['PATH']}"
    environment = {**lab.environment, "PATH": path, "ADAPTOR_CONFIG": str(lab.config)}

    def submitted(*words: str) -> int:
        command = ["sbatch", "--parsable", "--output=/dev/null", *words, "--wrap", "sleep 600"]
        return int(run_text(command, cwd=lab.work, env=environment, check=True).stdout)

    assert submitted("--time=5") < FIRST_JOB
    assert submitted("--time=5", "--array=1-150") >= FIRST_JOB, "free slots and queue take fewer"


def test_a_job_at_slurm_submits_through_the_shims_of_its_user(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """As a pipeline does that was passed on as a large job; its node asks the user's daemon."""
    lab.configure(SITE)
    lab.run("shims", lab.root / "bin", "--always")
    lab.run("daemon", "start")
    path = f"{lab.root / 'bin'}:{os.environ['PATH']}"
    environment = {**lab.environment, "PATH": path, "ADAPTOR_CONFIG": str(lab.config)}
    inner = "sbatch --parsable --time=5 --output=inner --wrap 'command -v sbatch'"
    command = ["sbatch", "--parsable", "--wait", "--time=2:00:00", "--output=outer", "--wrap", inner]
    outer = run_text(command, cwd=lab.work, env=environment, check=True)
    assert int(outer.stdout) < FIRST_JOB
    assert int((lab.work / "outer").read_text()) >= FIRST_JOB
    until(lambda: (lab.work / "inner").exists() and (lab.work / "inner").read_text(), "the task has run")
    assert not (lab.work / "inner").read_text().startswith(str(lab.root)), "tasks have Slurm's own"
