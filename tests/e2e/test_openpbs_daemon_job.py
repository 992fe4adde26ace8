"""The daemon as a job of a real OpenPBS, on a node with a name and an address of its own."""

from __future__ import annotations

import signal

import psutil
import pytest

from adaptor.daemon.jobs.record import DaemonJobs, read_jobs
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.pbs

SITE = site("pbs", (2, 4, "20m"), initial_tr="1m", idle_timeout=10, daemon={"worker_timeout": 15})
TASKS = 30


def jobs_of(lab: Lab) -> DaemonJobs:
    jobs = read_jobs(lab.state)
    assert jobs is not None
    return jobs


@pytest.mark.nightly  # it waits for a hand-over, for minutes
def test_it_is_killed_hands_over_to_another_node_and_is_stopped(openpbs: ThrowawayOpenPbs, lab: Lab) -> None:
    lab.configure(SITE)
    lab.run("daemon", "submit", "-t", "2m")
    host = lab.ask("status", "--daemon")["host"]
    assert host in openpbs.nodes, "the login node reaches it on a node"
    lab.bag([f"{lab.hold_after(15)}; echo $ADAPTOR_TASK_ID"] * TASKS)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] >= 5, "the bag is under way")
    psutil.Process(lab.daemon_pid()).send_signal(signal.SIGKILL)
    until(lab.daemon_answers, "the same job starts the daemon again")
    assert jobs_of(lab).current == 1
    until(lambda: jobs_of(lab).current > 1, "another job continues", timeout=150)
    until(lab.daemon_answers, "its daemon answers")
    lab.release()
    lab.wait(timeout=200)
    exactly_one_result_each(lab, 1, TASKS)
    lab.run("daemon", "stop")
    until(lambda: not openpbs.run(["qselect"], check=False).split(), "no job stays", timeout=100)
    assert read_jobs(lab.state) is None
