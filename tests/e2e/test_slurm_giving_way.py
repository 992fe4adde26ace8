"""Pilots that are preempted, and pilots that give nodes back before they end."""

from __future__ import annotations

import sqlite3
from datetime import datetime

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]


def site(partition: str, limits: str) -> str:
    return f"""
    sites:
      hpc:
        backend: slurm
        partition: {partition}
        limits: {limits}
        initial_tr: 10m
        idle_timeout: 3
        poll_interval: 2
    """


def test_a_preempted_pilot_gives_its_tasks_back(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("scavenger", "{max_pending_requests: 1, max_proc: 16, max_tr: 30m}"))
    lab.bag([lab.hold()] * 16)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["running"] == 16, "all tasks run")
    slurm.run(["sbatch", "-p", "batch", "-N4", "--exclusive", "-t1", "-o/dev/null", "--wrap", "sleep 3"])
    until(lambda: lab.pilots()[0]["state"] == "preempted", "the pilot gives way")
    lab.release()
    lab.wait(timeout=200)
    exactly_one_result_each(lab, 1, 16)
    lab.run("daemon", "stop")
    with sqlite3.connect(lab.state / "journal.sqlite") as journal:
        outcomes = journal.execute("SELECT DISTINCT outcome FROM attempt WHERE number = 1").fetchall()
    assert outcomes == [("preempted",)]


def test_the_last_task_does_not_hold_all_nodes(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("batch", "{max_pending_requests: 1, max_proc: 12, max_tr: 30m}"))
    lab.bag(["#ADAPTOR replicas=0", *[lab.hold("short")] * 11, f"{lab.hold('long')}; sleep 4"])
    lab.submit("tasks.bag")

    def nodes() -> int:
        told = slurm.run(["squeue", "-h", "-t", "R", "-o", "%D"], check=False).strip()
        return int(told) if told.isdigit() else 0

    until(lambda: nodes() == 3, "the pilot runs on three nodes")
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
