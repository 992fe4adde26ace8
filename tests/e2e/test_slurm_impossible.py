"""Bags that a real Slurm can never run, beside one that it can."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        heuristic: static
        limits: {max_pending_requests: 2, max_proc: 16, max_tr: 10m}
        initial_tr: 20s
        idle_timeout: 5
        poll_interval: 3
"""


def test_a_bag_that_fits_on_no_node_fails_and_the_others_go_on(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["#ADAPTOR mem=100G", "hostname"], "large.bag")
    lab.bag(["#ADAPTOR cpus=3", *5 * ["sleep 1"]], "odd.bag")
    large, odd = lab.submit("large.bag"), lab.submit("odd.bag")
    lab.wait(odd)
    exactly_one_result_each(lab, odd, 5)
    assert max(pilot["p"] for pilot in lab.pilots()) <= 12, "four nodes hold four tasks of three"
    lab.wait(large, expect=3)
    (task,) = lab.results(large)
    assert "no node can run it: hpc: each needs 100G on one node" in task["error"]
    again = lab.run("submit", "large.bag", expect=2)
    assert "no node can run these tasks: hpc: each needs 100G on one node" in again.stderr
