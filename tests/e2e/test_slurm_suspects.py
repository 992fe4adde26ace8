"""On a real Slurm: a task that ends its worker, or its whole job, does not run for ever."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(400)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        limits: {max_pending_requests: 3, max_proc: 6, max_tr: 20m}
        initial_tr: 30s
        idle_timeout: 5
        poll_interval: 2
    daemon:
      worker_timeout: 8
"""


def test_a_task_that_ends_its_worker_fails_and_the_others_are_done(slurm: ThrowawaySlurm, lab: Lab) -> None:
    assert slurm
    lab.configure(SITE)
    lab.bag(["kill -9 $PPID; sleep 5", *["sleep 1"] * 19])
    lab.submit("tasks.bag")
    lab.wait(expect=3, timeout=300)
    found = lab.results()
    assert [task["state"] for task in found] == ["failed"] + ["done"] * 19
    assert found[0]["error"].startswith("its worker died under it 3 times (last: node ")
    assert found[0]["attempts"] <= 6
    assert not any(task["retries"] for task in found)
    assert len(lab.pilots()) <= 16
