"""A bag through Torque's commands, which stand in front of a real Slurm."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_wrappers.backend_type import python_path
from tests.e2e.lab import Lab, exactly_one_result_each, until
from tests.e2e.watching import QueueWatch

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

SITE = """
    sites:
      hpc:
        backend: slurm-wrappers
        partition: batch
        limits: {max_pending_requests: 2, max_proc: 6, max_tr: 30m}
        initial_tr: 10s
        idle_timeout: 5
        poll_interval: 2
"""


def test_60_tasks_within_the_limits(
    slurm_wrappers: ThrowawaySlurm, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packages").mkdir()
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path / "packages"))
    lab.configure(SITE)
    draw = random.Random(1998)
    lab.bag(f"sleep {draw.uniform(0.2, 2):.2f}; echo $ADAPTOR_TASK_ID" for _ in range(60))
    size = "nodes=3:ppn=4,walltime=60"
    slurm_wrappers.run(
        ["qsub", "-N", "local", "-l", size, "-j", "oe", "-o", "/dev/null", "-b", "y", "sleep 5"]
    )
    with QueueWatch(slurm_wrappers) as watch:
        lab.run("run", "tasks.bag", timeout=300)
        until(lambda: not watch.look().jobs, "soon after the bag is done no pilot is left", timeout=60)
    shapes = {(processors, minutes) for seen in watch.seen for _, processors, minutes in seen.jobs}
    assert max(len(seen.jobs) for seen in watch.seen) <= 2
    assert max(processors for processors, _ in shapes) <= 6
    assert max(minutes for _, minutes in shapes) <= 30
    exactly_one_result_each(lab, 1, 60)
    well = {"completed", "withdrawn"}
    until(lambda: {pilot["state"] for pilot in lab.pilots()} <= well, "every pilot has ended well")
