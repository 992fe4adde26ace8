"""The daemon as a job of a real Slurm: it hands over, and comes back after kills; no result is lost."""

from __future__ import annotations

import signal

import psutil
import pytest

from adaptor.daemon.jobs.record import DaemonJobs, read_jobs
from adaptor.errors import UsageError
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm

SITE = site("slurm", (3, 6, "20m"), initial_tr="3m", idle_timeout=10, daemon={"worker_timeout": 15})
TASKS = 40


def jobs_of(lab: Lab) -> DaemonJobs:
    jobs = read_jobs(lab.state)
    assert jobs is not None
    return jobs


def queued(slurm: ThrowawaySlurm) -> list[str]:
    """The names of all jobs in the queue."""
    return slurm.run(["squeue", "-h", "-t", "PD,R", "-o", "%j"]).split()


@pytest.fixture
def in_job(slurm: ThrowawaySlurm, lab: Lab) -> Lab:
    lab.configure(SITE)
    said = lab.run("daemon", "submit", "-t", "2m").stdout
    assert "job 1 at hpc runs the daemon" in said or "runs the daemon on" in said
    return lab


@pytest.mark.nightly  # a hand-over takes half of the shortest walltime that Slurm has in minutes
def test_it_is_killed_hands_over_and_is_stopped(slurm: ThrowawaySlurm, in_job: Lab) -> None:
    lab = in_job
    assert "runs as job" in lab.run("status", "--daemon").stdout
    lab.bag([f"{lab.hold_after(20)}; echo $ADAPTOR_TASK_ID"] * TASKS)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] >= 5, "the bag is under way")
    psutil.Process(lab.daemon_pid()).send_signal(signal.SIGKILL)
    until(lab.daemon_answers, "the same job starts the daemon again")
    first = jobs_of(lab)
    assert first.current == 1
    until(lambda: jobs_of(lab).current > 1, "another job continues", timeout=150)
    until(lab.daemon_answers, "its daemon answers")
    lab.release()
    lab.wait(timeout=200)
    exactly_one_result_each(lab, 1, TASKS)
    assert "no daemon ran for" in lab.run("why").stdout
    assert lab.run("daemon", "restart").returncode == 0, "the job starts the next one"
    lab.run("daemon", "stop")
    until(lambda: not [name for name in queued(slurm) if "daemon" in name], "no job of the daemon stays")
    assert read_jobs(lab.state) is None


def test_no_daemon_is_started_beside_a_job_that_waits(slurm: ThrowawaySlurm, lab: Lab) -> None:
    slurm.occupy(4, 30)
    lab.configure(SITE)
    said = lab.run("daemon", "submit", "--wait", "3s").stdout
    assert "waits" in said
    refused = lab.run("daemon", "run", expect=UsageError.exit_code).stderr
    assert "runs as a job at hpc" in refused
    assert (
        "the daemon runs as a job at hpc already"
        in lab.run("daemon", "submit", "-t", "5m", expect=UsageError.exit_code).stderr
    )
    assert "runs the next one when the scheduler starts it" in lab.run("status", "--daemon", expect=1).stderr
    assert lab.run("daemon", "submit", "--wait", "0s").stdout.count("waits") == 1, (
        "no second one is submitted"
    )
    assert "cancelled: job" in lab.run("daemon", "stop").stdout
    assert not [name for name in queued(slurm) if "daemon" in name]


def test_one_that_was_started_by_hand_goes_on_in_the_job(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.run("daemon", "start")
    before = lab.daemon_pid()
    lab.run("daemon", "submit")
    until(lambda: not psutil.pid_exists(before), "the one that was started by hand has ended")
    until(lab.daemon_answers, "that of the job answers")
    lab.run("daemon", "stop")


def test_a_node_without_the_folder_is_named(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """The prologue stands for a node on which the folder of the daemon is not there."""
    lab.configure(site("slurm", prologue="exit 3"))
    said = lab.run("daemon", "submit", expect=1).stderr
    assert "before its daemon ran" in said
    assert "its node may not have this folder" in said
    lab.run("daemon", "stop")


@pytest.mark.nightly
def test_its_node_is_lost(slurm: ThrowawaySlurm, in_job: Lab) -> None:
    lab = in_job
    until(lambda: jobs_of(lab).next_job, "the next job is in the queue")
    node = slurm.run(["squeue", "-h", "-j", jobs_of(lab).current_job, "-o", "%N"]).strip()
    slurm.stop_node(node)
    slurm.run(["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test"])
    until(lambda: jobs_of(lab).current > 1, "the next job has started", timeout=120)
    until(lab.daemon_answers, "its daemon answers")
    lab.run("daemon", "stop")
