"""A hole of two minutes in front of a planned job on a real OpenPBS: several rounds of tasks use it."""

from __future__ import annotations

import time

import pytest

from backends.pbs.fields import parse_time
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, site
from tests.living import until

pytestmark = pytest.mark.pbs

SITE = site("pbs", (2, 16, "4h"), heuristic="adaptive")


def qsub(cluster: ThrowawayOpenPbs, nodes: int, seconds: int) -> str:
    options = ["-l", f"select={nodes}:ncpus=4", "-l", "place=scatter:excl", "-l", f"walltime={seconds}"]
    job = ["--", "/bin/sleep", str(seconds)]
    return cluster.run(["qsub", *options, "-j", "oe", "-o", "/dev/null", *job]).strip()


def planned_start(cluster: ThrowawayOpenPbs, job: str) -> float:
    for line in cluster.run(["env", "TZ=UTC", "qstat", "-f", job]).splitlines():
        name, _, value = line.strip().partition(" = ")
        if name == "estimated.start_time":
            return parse_time(value)
    return 0.0


@pytest.mark.nightly  # waits for a hole of minutes
def test_several_rounds_of_tasks_fit_into_a_short_hole(openpbs: ThrowawayOpenPbs, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["sleep 20"] * 48)
    lab.run("daemon", "start")
    with openpbs.plans():
        holder = qsub(openpbs, 2, 130)
        until(lambda: "job_state = R" in openpbs.run(["qstat", "-f", holder]), "the first job runs")
        planned = qsub(openpbs, 4, 600)
        before = until(lambda: planned_start(openpbs, planned), "the second job is planned")
        bag = lab.submit("tasks.bag", "--time", "20s")
        hole = before - time.time()
        running = until(
            lambda: [pilot for pilot in lab.pilots() if pilot["state"] == "running"], "a pilot has started"
        )
        (pilot,) = running
        assert pilot["p"] == 8, "two free nodes of four processors"
        assert 2 * 20 < pilot["tr"] <= hole, "it may ask for all of the hole"
        until(lambda: lab.status(bag)["done"] >= 16, "two rounds end in the hole")
        assert time.time() < before
        assert planned_start(openpbs, planned) <= before + 1, "the planned job is not delayed"
        lab.run("cancel", str(bag))
