"""`kill -9` of the daemon, of a worker and of slurmctld in the middle of a bag on a real Slurm."""

from __future__ import annotations

import signal
import time

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.test_local_crashes import workers_of
from tests.living import until

pytestmark = pytest.mark.slurm

SITE = site(
    "slurm", (3, 6, "20m"), initial_tr="3m", idle_timeout=10, command_timeout=10, daemon={"worker_timeout": 8}
)
TASKS = 120


@pytest.fixture
def busy(slurm: ThrowawaySlurm, lab: Lab) -> Lab:
    lab.begin(SITE, ["sleep 2; echo $ADAPTOR_TASK_ID"] * TASKS)
    return lab


def test_a_pilot_is_cancelled_and_daemon_worker_and_slurmctld_are_killed(
    slurm: ThrowawaySlurm, busy: Lab
) -> None:
    victim = next(pilot for pilot in busy.pilots() if pilot["state"] == "running")
    slurm.run(["scancel", victim["job"]])

    def end() -> str:
        return next(str(pilot["state"]) for pilot in busy.pilots() if pilot["id"] == victim["id"])

    assert until(lambda: end() != "running" and end(), "its end is noticed") == "cancelled"
    until(lambda: workers_of(busy), "another pilot runs")
    slurm.stop_controller(kill=True)
    until(lambda: busy.ask("status", "--sites")[0]["problem"], "the daemon says that Slurm does not answer")
    busy.kill_daemon()
    workers_of(busy)[0].send_signal(signal.SIGKILL)
    busy.run("daemon", "start")
    before = busy.status()["done"]
    until(lambda: busy.status()["done"] > before + 5, "tasks finish while slurmctld is away")
    slurm.start_controller()
    busy.wait(timeout=300)
    exactly_one_result_each(busy, 1, TASKS)
    until(lambda: not _jobs(slurm), "no pilot is left in the queue")


@pytest.mark.nightly
def test_slurmctld_is_away_for_a_minute(slurm: ThrowawaySlurm, busy: Lab) -> None:
    slurm.stop_controller()
    until(lambda: busy.ask("status", "--sites")[0]["problem"], "the daemon says that Slurm does not answer")
    away = time.monotonic() + 60
    until(lambda: time.monotonic() > away, "a minute has passed", pause=1)
    assert busy.status()["state"] in ("running", "done")
    assert {pilot["state"] for pilot in busy.pilots()} <= {"submitting", "queued", "running", "completed"}
    slurm.start_controller()
    busy.wait(timeout=300)
    exactly_one_result_each(busy, 1, TASKS)


def _jobs(slurm: ThrowawaySlurm) -> str:
    return slurm.run(["squeue", "-h", "-t", "PD,R", "-o", "%i"], check=False)
