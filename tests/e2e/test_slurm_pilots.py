"""Pilots that are preempted, give nodes back or meet their walltime, and bags that no pilot can run."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm
TERMS = {"initial_tr": "10m", "idle_timeout": 3}


def test_a_preempted_pilot_gives_its_tasks_back(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (1, 16, "30m"), partition="scavenger", **TERMS))
    lab.bag([lab.hold()] * 16)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["running"] == 16, "all tasks run")
    slurm.occupy(4, 1, "sleep 3")
    until(lambda: lab.pilots()[0]["state"] == "preempted", "the pilot gives way")
    lab.release()
    lab.wait()
    exactly_one_result_each(lab, 1, 16)
    lab.run("daemon", "stop")
    with sqlite3.connect(lab.state / "journal.sqlite") as journal:
        outcomes = journal.execute("SELECT DISTINCT outcome FROM attempt WHERE number = 1").fetchall()
    assert outcomes == [("preempted",)]


def test_the_last_task_does_not_hold_all_nodes(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (1, 12, "30m"), **TERMS))
    lab.bag(["#ADAPTOR replicas=0", *[lab.hold("short")] * 11, f"{lab.hold('long')}; sleep 4"])
    lab.submit("tasks.bag")

    def nodes() -> int:
        told = slurm.run(["squeue", "-h", "-t", "R", "-o", "%D"], check=False).strip()
        return int(told) if told.isdigit() else 0

    until(lambda: nodes() == 3, "the pilot runs on three nodes")
    comment = json.loads(slurm.run(["squeue", "-h", "-o", "%k"]))
    assert (comment["tool"], comment["kind"]) == ("request-adaptor", "request")
    lab.release("short")
    until(lambda: 0 < nodes() < 3, "a node was given back")
    assert lab.status()["running"] == 1
    lab.release("long")
    lab.wait()
    exactly_one_result_each(lab, 1, 12)
    until(lambda: lab.pilots()[0]["ended"], "the pilot has ended")
    (pilot,) = lab.ask("report", "1")["requests"]
    begin, end = (datetime.fromisoformat(pilot[key].rstrip("Z")) for key in ("started", "ended"))
    held = 12 * (end - begin).total_seconds()  # of Slurm, which rounds both; eight were given back 4 s before
    assert pilot["used"] + pilot["wasted"] < held, "what was given back is not counted as held"


@pytest.mark.nightly
def test_tr_grows_by_the_factor_until_the_tasks_finish(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(
        site("slurm", (1, 4, "10m"), heuristic="adaptive", initial_tr="30s", growth_factor=2, pad="30s")
    )
    lab.bag(['[ "$ADAPTOR_ATTEMPT" -gt 1 ] || sleep 70'] * 4)  # longer than the minute, in the first one
    lab.run("run", "tasks.bag")
    exactly_one_result_each(lab, 1, 4)
    requests = lab.ask("report", "1")["requests"]
    # Cut after 55 s of its minute, or a few less where the worker starts slowly; twice that and the pad are
    # more than two minutes.
    assert [request["tr"] for request in requests] == [60, 180]
    assert [task["attempts"] for task in lab.results(1)] == [2] * 4


SITE = site("slurm", (2, 16, "10m"), heuristic="static", initial_tr="20s", idle_timeout=5, poll_interval=3)


def test_a_bag_that_fits_on_no_node_is_refused_and_the_others_go_on(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["#ADAPTOR mem=100G", "hostname"], "large.bag")
    lab.bag(["#ADAPTOR cpus=3", *5 * ["sleep 1"]], "odd.bag")
    refused = lab.run("submit", "large.bag", expect=2)
    assert "large.bag:1: no node can run these tasks: hpc: each needs 100G on one node" in refused.stderr
    odd = lab.submit("odd.bag")
    lab.wait(odd)
    exactly_one_result_each(lab, odd, 5)
    assert max(pilot["p"] for pilot in lab.pilots()) <= 12, "four nodes hold four tasks of three"
