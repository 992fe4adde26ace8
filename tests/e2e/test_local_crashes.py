"""`kill -9` of the daemon and of a worker in the middle of a bag; a second daemon; a stopped one."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.e2e.lab import LONG, Lab, exactly_one_result_each, found_below, site
from tests.living import until

LOCAL = site("local", (2, 2, "1h"), processors=3, idle_timeout=5, daemon={"worker_timeout": 20})
FREE = 8
"""Tasks that run at once; the others wait until they are released."""


def workers_of(lab: Lab) -> list[psutil.Process]:
    """The worker processes of this lab's pilots."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "adaptor.worker" in (process.info["cmdline"] or []):
            try:
                if process.environ().get("ADAPTOR_DIRECTORY", "").startswith(str(lab.state)):
                    found.append(process)
            except psutil.Error:
                continue
    return found


def runs(lab: Lab) -> list[str]:
    """One line per execution of a task, from a file that the tasks write themselves."""
    path = lab.work / "runs"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


@pytest.fixture
def busy(lab: Lab) -> Lab:
    lab.begin(LOCAL, [f"{lab.hold_after(FREE)}; sleep 0.3; echo $ADAPTOR_TASK_ID >> runs"] * 40)
    return lab


def test_the_daemon_is_killed_and_one_without_a_configuration_goes_on(busy: Lab) -> None:
    """It takes the configuration of the killed one, meets its pilots, and runs nothing again."""
    pilots = {pilot["job"] for pilot in busy.pilots()}
    busy.kill_daemon()
    assert workers_of(busy), "the pilots live on"
    busy.release()
    named, busy.config = busy.config, None
    told = busy.run("daemon", "start")
    assert f"the daemon uses {named}, as the last one did" in told.stderr
    assert f"configuration {named}" in told.stdout
    busy.wait()
    exactly_one_result_each(busy, 1, 40)
    assert sorted(map(int, runs(busy))) == list(range(40)), "each task ran once"
    assert {pilot["job"] for pilot in busy.pilots()} >= pilots, "the pilots were met again"
    assert {pilot["site"] for pilot in busy.pilots()} == {"here"}


def test_commands_at_once_without_a_daemon_all_succeed(lab: Lab) -> None:
    """One of them starts the daemon, the others use it: at the first submit, and after `kill -9`."""
    lab.configure(LOCAL)
    lab.bag(["true"])
    finished(lab, *[lab.start("submit", "tasks.bag") for _ in range(4)])
    assert [bag["id"] for bag in lab.ask("status", "all")["bags"]] == [1, 2, 3, 4]
    opened = int(lab.ask("submit", "--open", "--name", "grows")["bag"])
    lab.kill_daemon()
    appends = [lab.start("append", str(opened), "tasks.bag") for _ in range(3)]
    finished(lab, *appends, lab.start("daemon", "start"), lab.start("run", "tasks.bag"))
    lab.run("append", str(opened), "--close")
    lab.wait(opened)
    exactly_one_result_each(lab, opened, 3)


def finished(lab: Lab, *commands: subprocess.Popen[str]) -> None:
    """All have ended with exit code 0."""
    told = [(command.communicate(timeout=LONG)[0], command.returncode) for command in commands]
    assert not any(code for _, code in told), f"{told}\n{lab.log()}"


def test_daemon_and_workers_are_killed_together(busy: Lab) -> None:
    busy.kill_daemon()
    for worker in workers_of(busy):
        worker.send_signal(signal.SIGKILL)
    busy.release()
    busy.run("daemon", "start")
    busy.wait()
    exactly_one_result_each(busy, 1, 40)


def test_stopping_the_daemon_leaves_its_pilots_to_the_next_one(busy: Lab) -> None:
    busy.run("daemon", "stop")
    assert workers_of(busy)
    assert "no daemon" in busy.run("status").stderr
    busy.release()
    busy.run("daemon", "start")
    busy.wait()
    exactly_one_result_each(busy, 1, 40)
    assert sorted(map(int, runs(busy))) == list(range(40))


def test_a_pilot_that_is_cancelled_by_hand_charges_no_retry(busy: Lab) -> None:
    """The supervisor is the local site's scheduler for a running pilot: SIGTERM is its cancel."""
    worker = workers_of(busy)[0]
    supervisor = worker.parent()
    assert supervisor is not None
    supervisor.terminate()
    busy.release()
    busy.wait()
    exactly_one_result_each(busy, 1, 40)


def test_a_second_daemon_is_refused_no_secret_is_seen_and_a_stop_leaves_nothing(busy: Lab) -> None:
    first = busy.daemon_pid()
    told = busy.run("daemon", "run", expect=1).stderr
    assert f"process {first}" in told
    assert "adaptor daemon stop" in told
    assert busy.daemon_pid() == first

    nothing_secret_is_on_a_command_line_or_open_to_others(busy)

    busy.run("daemon", "stop", "--pilots")
    until(lambda: not workers_of(busy), "the workers have left")
    states = {pilot["state"] for pilot in busy.pilots()}
    assert not states & {"running", "queued", "submitting"}
    assert busy.status()["done"] < 40


def nothing_secret_is_on_a_command_line_or_open_to_others(busy: Lab) -> None:
    secrets = {
        json.loads((busy.state / name).read_text())["own"]["key"]
        for name in ("access-worker-here.json", "access-client.json")
    }
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert not any(secret in line for secret in secrets for line in lines)
    for path, status in found_below(busy.state):
        if not stat.S_ISLNK(status.st_mode) and not stat.S_ISSOCK(status.st_mode):
            assert not status.st_mode & 0o077 or _inside_private(path, busy.state), path


def _inside_private(path: Path, state: Path) -> bool:
    """Files of other modes are shut off by their 0700 folder; secrets themselves must be 0600."""
    secret = path.name in {"keys.json", "access-worker-here.json", "access-client.json", "journal.sqlite"}
    return not secret and not path.is_dir() and not state.stat().st_mode & 0o077
