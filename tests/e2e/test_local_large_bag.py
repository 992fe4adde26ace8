"""A large bag comes in parts: whole or not at all, and in little memory of the daemon."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, site
from tests.living import until

SITE = site("local", processors=1)
TASKS = 30_000
MB = 2**20


def _submit(lab: Lab) -> subprocess.Popen[str]:
    lab.configure(SITE)
    lab.run("daemon", "start")
    lab.bag(f"echo {number}" for number in range(TASKS))
    log = lab.state / "journal.sqlite-wal"
    before = log.stat().st_size
    submitting = lab.start("submit", "tasks.bag", "--no-env")
    until(lambda: log.stat().st_size > before + 200_000, "some parts have come", pause=0.01)
    return submitting


def test_a_daemon_that_is_killed_while_a_bag_comes_has_all_of_it_in_the_end(lab: Lab) -> None:
    with _submit(lab) as submitting:
        lab.kill_daemon()
        told, _ = submitting.communicate()
    assert "30000 tasks" in told.replace(",", "")
    (view,) = lab.ask("status", "all")["bags"]
    assert view["tasks"] == sum(view[state] for state in ("waiting", "running", "done")) == TASKS
    last = lab.run("results", "1", "--task", str(TASKS - 1), "--json").stdout
    assert f"echo {TASKS - 1}" in last


def test_a_bag_whose_client_is_killed_while_it_comes_is_not_there(lab: Lab) -> None:
    with _submit(lab) as submitting:
        submitting.kill()
    assert lab.ask("status", "all")["bags"] == []
    lab.bag(["true"], "small.bag")
    lab.run("submit", "small.bag")
    (view,) = lab.ask("status", "all")["bags"]
    assert (view["tasks"], view["name"]) == (1, "small")


@pytest.mark.nightly
def test_the_daemon_needs_a_few_bytes_for_each_of_200_000_tasks(lab: Lab) -> None:
    lab.configure(SITE)
    lab.run("daemon", "start")
    lab.bag(f"echo {number}" for number in range(200_000))

    def peak(what: Callable[[], object]) -> int:
        Path(f"/proc/{lab.daemon_pid()}/clear_refs").write_text("5")
        what()
        lines = Path(f"/proc/{lab.daemon_pid()}/status").read_text().splitlines()
        (line,) = [each for each in lines if each.startswith("VmHWM")]
        return int(line.split()[1]) * 1024

    def restart() -> None:
        lab.run("daemon", "stop")
        lab.run("daemon", "start")

    nothing = peak(lambda: None)
    words = [
        *(("submit", "tasks.bag", "--no-env"), ("status",), ("results", "1", "--csv"), ("cancel", "1")),
        *(("retry", "1"), ("pause", "1")),
    ]
    peaks = {each[0]: peak(lambda words=each: lab.run(*words)) for each in words}  # type: ignore[misc]
    peaks["restart"] = peak(restart)
    assert {what: most - nothing for what, most in peaks.items() if most - nothing > 40 * MB} == {}
