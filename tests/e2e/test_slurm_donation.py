"""Idle nodes of a real Slurm, lent by preemptible jobs: local jobs get them as if we were not there."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm

SCAVENGER = {"mode": "preemptible", "partition": "scavenger"}
LENT = {"initial_tr": "10m", "idle_timeout": 3, "donation": SCAVENGER}
SITE = site("slurm", (2, 16, "30m"), **LENT)


def lent(lab: Lab) -> list[str]:
    return [pilot["node"] for pilot in lab.pilots() if pilot["node"] and pilot["state"] == "running"]


def test_a_local_job_gets_donated_nodes_within_the_grace_time(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["#ADAPTOR allocation=transparent replicas=0", *[f"{lab.hold()}; sleep 2"] * 48])
    lab.submit("tasks.bag")
    until(lambda: len(lent(lab)) == 4, "all four nodes are lent")
    until(lambda: lab.status()["running"] == 16, "tasks run on all of them")
    script = f"scontrol show hostnames > {lab.work}/nodes; sleep 4"
    slurm.occupy(2, 10, script)
    nodes = lab.work / "nodes"
    until(lambda: nodes.exists() and nodes.read_text().count("\n") == 2, "the local job starts")
    lab.release()
    lab.wait()
    exactly_one_result_each(lab, 1, 48)
    requests = lab.ask("report", "1")["requests"]
    assert all(pilot["reclaim_time"] is not None for pilot in requests if pilot["state"] == "preempted")
    ends = {pilot["node"]: pilot["state"] for pilot in requests if pilot["state"] == "preempted"}
    assert set(ends) == set(nodes.read_text().split())
    lab.run("daemon", "stop")
    outcomes = [each["outcome"] for each in lab.attempts(1, list(range(48)))]
    assert outcomes.count("preempted") == 8, "what ran there"
    assert set(outcomes) <= {"done", "preempted", "returned"}


@pytest.mark.nightly  # the test above has the usual way
def test_a_drained_node_two_jobs_at_once_and_a_killed_daemon(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["#ADAPTOR allocation=transparent retries=0", *[f"trap '' TERM; {lab.hold()}; sleep 5"] * 40])
    lab.submit("tasks.bag")
    until(lambda: len(lent(lab)) == 4, "all four nodes are lent")
    slurm.run(["scontrol", "update", "nodename=n4", "state=drain", "reason=test"])
    until(lambda: "n4" not in lent(lab), "a drained node is given up")
    for name in ("one", "two"):
        script = f"{lab.hold('daemon-back')}; touch {lab.work}/{name}"
        slurm.occupy(2, 10, script)
    until(lambda: len(lent(lab)) < 3, "local jobs have taken nodes")
    lab.kill_daemon()
    slurm.run(["scontrol", "update", "nodename=n4", "state=resume"])
    before = {pilot["node"]: pilot["id"] for pilot in lab.pilots() if pilot["state"] == "running"}
    lab.run("daemon", "start")
    after = {pilot["node"]: pilot["id"] for pilot in lab.pilots() if pilot["id"] in before.values()}
    assert after == before, "it knows what is lent"
    lab.release("daemon-back")
    until(lambda: (lab.work / "one").exists() and (lab.work / "two").exists(), "both jobs have run")
    lab.release()
    lab.wait()
    exactly_one_result_each(lab, 1, 40)
    told = lab.ask("status", "--sites")[0]["donation"]
    assert told["reclaims"] >= 2
    assert told["used"] >= 40 * 5


@pytest.mark.nightly
def test_a_cheap_bag_asks_for_nothing_that_idle_nodes_give_for_less(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (2, 16, "30m"), price={"explicit": 1.0, "donated": 0.25}, **LENT))
    lab.bag(["#ADAPTOR replicas=0", *["sleep 2"] * 48])
    lab.submit("tasks.bag", "--prefer", "cheap")
    lab.wait()
    exactly_one_result_each(lab, 1, 48)
    assert {pilot["node"] for pilot in lab.pilots()} == {"n1", "n2", "n3", "n4"}, "no formal request"
    assert "at hpc (donated)" in lab.run("why", "last").stdout
