"""Idle nodes of a real OpenPBS, donated by jobs that yield: local jobs get them as if we were not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.pbs

SCAVENGER = {"mode": "preemptible", "partition": "scavenger"}
TERMS = {"partition": "workq", "initial_tr": "2m", "idle_timeout": 3, "donation": SCAVENGER}
PREEMPTIBLE = site("pbs", (2, 16, "30m"), **TERMS, daemon={"worker_timeout": 8})


def donated(lab: Lab) -> list[str]:
    return [pilot["node"] for pilot in lab.pilots() if pilot["node"] and pilot["state"] == "running"]


def local_job(openpbs: ThrowawayOpenPbs, script: str) -> None:
    options = ["-q", "workq", "-l", "select=2:ncpus=4", "-l", "place=scatter:excl", "-l", "walltime=60"]
    openpbs.run(["qsub", *options, "-j", "oe", "-o", "/dev/null", "--", "/bin/sh", "-c", script])


@pytest.fixture
def preempting(openpbs: ThrowawayOpenPbs, request: pytest.FixtureRequest) -> Iterator[ThrowawayOpenPbs]:
    """By the `preempt_order` that is the parameter."""
    openpbs.qmgr(f"set sched default preempt_order = {request.param}")
    yield openpbs
    openpbs.qmgr("set sched default preempt_order = D")


@pytest.mark.parametrize("preempting", ["D", "R"], indirect=True)
@pytest.mark.nightly  # a cluster of its own; test_slurm_donation.py has the usual way
def test_a_local_job_gets_donated_nodes_whether_pilots_are_deleted_or_put_back(
    preempting: ThrowawayOpenPbs, lab: Lab
) -> None:
    lab.configure(PREEMPTIBLE)
    lab.bag(["#ADAPTOR allocation=transparent replicas=0", *["sleep 6"] * 48])
    lab.submit("tasks.bag")
    until(lambda: len(donated(lab)) == 4, "all four nodes are donated")
    until(lambda: lab.status()["running"] == 16, "tasks run on all of them")
    local_job(preempting, f"cp $PBS_NODEFILE {lab.work}/nodes; sleep 4")
    until(lambda: (lab.work / "nodes").exists(), "the local job starts")
    lab.wait()
    exactly_one_result_each(lab, 1, 48)
    ends = {pilot["node"] for pilot in lab.pilots() if pilot["state"] == "preempted"}
    assert ends == set((lab.work / "nodes").read_text().split())
    lab.run("daemon", "stop")
    outcomes = [each["outcome"] for each in lab.attempts(1, list(range(48)))]
    assert outcomes.count("done") == 48
    until(lambda: not preempting.run(["qselect"]).split(), "nothing waits to run again")
