"""One bag over two clusters, one of them over ssh and stopped half-way: slower, and nothing is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.clusters.sshd import ThrowawaySshd
from tests.e2e.lab import Lab, exactly_one_result_each, keys_of, sites
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.ssh]

TASKS = 240

SHORT = {"initial_tr": "20s", "idle_timeout": 10, "grace_time": 3}


@pytest.fixture
def far(slurm: ThrowawaySlurm) -> Iterator[ThrowawaySlurm]:
    """A second cluster beside the shared one."""
    with ThrowawaySlurm(ClusterOptions(nodes=2, cpus=8)) as cluster:
        yield cluster


def at_work(lab: Lab) -> set[str]:
    """The sites with a pilot that runs."""
    return {pilot["site"] for pilot in lab.pilots() if pilot["state"] == "running"}


def problems(lab: Lab) -> dict[str, str]:
    return {site["name"]: site["problem"] for site in lab.ask("status", "--sites")}


@pytest.mark.nightly  # a second cluster of its own
def test_one_bag_over_two_clusters_of_which_one_is_stopped(
    slurm: ThrowawaySlurm, far: ThrowawaySlurm, sshd: ThrowawaySshd, lab: Lab
) -> None:
    ssh = {**sshd.site(), "directory": str(lab.root / "over there")}
    variables = {"SLURM_CONF": str(far.conf), "PATH": "/usr/bin:/bin"}
    reached = {"python": sys.executable, "ssh": ssh, "environment": variables, "command_timeout": 5}
    here = {"environment": {"SLURM_CONF": str(slurm.conf)}}
    two = {
        "near": keys_of("slurm", (3, 16, "2m"), **here, **SHORT),
        "far": keys_of("slurm", (3, 16, "30m"), **reached, **SHORT),
    }
    lab.configure(sites(two, daemon={"worker_timeout": 6}))
    lab.bag([f"{lab.hold()}; sleep 2"] * TASKS)
    lab.submit("tasks.bag")
    # Until tasks are known to be short, three requests of two minutes are too few for all of them.
    until(lambda: at_work(lab) == {"near", "far"}, "both are at work")
    lab.release()
    until(lambda: lab.status()["done"] >= TASKS // 4, "a quarter is done")
    far.stop()
    lab.wait()
    exactly_one_result_each(lab, 1, TASKS)
    assert all(task["attempts"] <= 3 for task in lab.results())
    until(lambda: problems(lab)["far"], "the daemon has noticed")
    assert not problems(lab)["near"]
    told = lab.run("why", "--limit", "200").stdout
    assert "near: divided: plans for" in told
    assert "far: divided: plans for" in told
