"""The daemon's machine goes down in the middle of a bag: systemd brings the daemon back, with its pilots."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.systemd_user import SystemdUser, unavailable
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import run_text, until

pytestmark = pytest.mark.slurm

SITE = site("slurm", (2, 4, "20m"), initial_tr="2m", idle_timeout=10)
TASKS = 60


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[SystemdUser]:
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    instance = SystemdUser(tmp_path / "home")
    try:
        instance.start()
        yield instance
    finally:
        instance.close()


def adaptor(lab: Lab, systemd: SystemdUser, *arguments: str) -> subprocess.CompletedProcess[str]:
    return systemd.run(lab.command(*arguments), lab.environment)


def main_pid(lab: Lab, systemd: SystemdUser) -> int:
    """The daemon's process as systemd knows it; 0: none."""
    name = next((Path(systemd.environment["HOME"]) / ".config/systemd/user").glob("adaptor*.service")).name
    shown = systemd.run(["systemctl", "--user", "show", "-P", "MainPID", name], os.environ)
    return int(shown.stdout)


def answers(lab: Lab) -> bool:
    """A daemon that is just starting lives, and does not answer yet."""
    asked = run_text(lab.command("status", "--daemon"), env=lab.environment)
    return asked.returncode == 0


@pytest.mark.nightly  # test_slurm_crashes.py has the kill of a daemon
def test_the_daemon_comes_back_with_its_pilots(slurm: ThrowawaySlurm, lab: Lab, systemd: SystemdUser) -> None:
    lab.configure(SITE)
    installed = adaptor(lab, systemd, "daemon", "install", "--yes")
    assert installed.returncode == 0, installed.stderr
    assert "ExecStart=" in installed.stdout
    assert "lingering is" in installed.stdout
    assert "runs under systemd" in installed.stdout
    assert lab.daemon_pid() == main_pid(lab, systemd) > 0
    lab.bag(["sleep 1; echo $ADAPTOR_TASK_ID"] * TASKS)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] >= 5, "the bag is under way")
    pilots = {pilot["job"] for pilot in lab.pilots() if pilot["state"] == "running"}

    first = lab.daemon_pid()
    os.kill(first, 9)
    until(lambda: main_pid(lab, systemd) not in (0, first), "systemd starts it after a crash")

    systemd.kill()
    assert "no daemon is running" in lab.run("status").stderr
    systemd.start()
    until(lambda: main_pid(lab, systemd) > 0, "it starts with the instance")
    until(lambda: answers(lab), "it answers")
    assert pilots <= {pilot["job"] for pilot in lab.pilots()}
    lab.wait()
    exactly_one_result_each(lab, 1, TASKS)
    assert pilots & {row["job"] for row in lab.pilots() if row["used"] > 0}

    removed = adaptor(lab, systemd, "daemon", "install", "--remove", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert "no daemon is running" in lab.run("status").stderr
    assert not list((Path(systemd.environment["HOME"]) / ".config/systemd/user").glob("adaptor*"))
