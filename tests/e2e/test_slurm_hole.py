"""A hole of known size in front of a planned job: the request takes it at once and delays nobody."""

from __future__ import annotations

import time

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]


def planned_start(slurm: ThrowawaySlurm, job: str) -> float:
    told = slurm.run(["squeue", "-h", "-j", job, "-o", "%S"], env={"SLURM_TIME_FORMAT": "%s"}).strip()
    return float(told) if told.isdigit() else 0.0


def test_a_request_takes_the_hole_in_front_of_a_planned_job(slurm: ThrowawaySlurm, lab: Lab) -> None:
    busy = slurm.run(
        [
            "sbatch",
            "--parsable",
            "-p",
            "batch",
            "-N2",
            "--exclusive",
            "-t15",
            "-o/dev/null",
            "--wrap",
            "sleep 900",
        ]
    ).strip()
    until(lambda: slurm.run(["squeue", "-h", "-j", busy, "-t", "R"]), "the first job runs")
    planned = slurm.run(
        [
            "sbatch",
            "--parsable",
            "-p",
            "batch",
            "-N4",
            "--exclusive",
            "-t30",
            "-o/dev/null",
            "--wrap",
            "sleep 1800",
        ]
    ).strip()
    before = until(lambda: planned_start(slurm, planned), "the second job is planned")
    hole = before - time.time()
    assert 13 * 60 < hole <= 15 * 60

    lab.configure("""
        sites:
          hpc:
            backend: slurm
            partition: batch
            limits: {max_pending_requests: 2, max_proc: 16, max_tr: 4h}
            initial_tr: 5m
            poll_interval: 2
    """)
    lab.bag(["sleep 5"] * 16)
    submitted = time.time()
    bag = lab.submit("tasks.bag")
    running = until(
        lambda: [pilot for pilot in lab.pilots() if pilot["state"] == "running"],
        "a pilot has started",
    )
    (pilot,) = running
    assert pilot["p"] == 8, "two free nodes of four processors"
    assert 5 * 60 < pilot["tr"] <= hole - 60, "no longer than the hole"
    issued = next(p for p in lab.pilots() if p["id"] == pilot["id"])
    assert issued["predicted_start"] is not None
    until(lambda: planned_start(slurm, planned), "the second job is still planned")
    assert planned_start(slurm, planned) <= before + 1, "the planned job is not delayed"
    lab.wait(bag)
    assert time.time() - submitted < hole
