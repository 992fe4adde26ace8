"""The state directory changes under the daemon: it holds or ends with its reason, and what it said holds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

SITE = site("local", (2, 2, "1h"), processors=2, idle_timeout=5, grace_time=1)


@pytest.fixture
def held(lab: Lab) -> Iterator[Lab]:
    """A daemon with one bag, whose tasks run until they are released."""
    lab.configure(SITE)
    lab.submit(lab.bag([lab.hold()] * 3))
    until(lambda: lab.ask("status", "1")["bags"][0]["running"] == 2, "two tasks run")
    yield lab
    lab.release()


def pid_of(lab: Lab) -> int:
    return int(lab.ask("status", "--daemon")["pid"])


def log_has(lab: Lab, text: str, folder: Path | None = None) -> None:
    log = (folder or lab.state) / "daemon.log"
    until(lambda: text in log.read_text(), f"{text!r} in the log")


def goes_on(lab: Lab, pid: int) -> None:
    """The same daemon takes another bag, and all tasks have one result."""
    until(lambda: not lab.ask("status", "--daemon")["stalled"], "the journal can be written")
    assert pid_of(lab) == pid
    assert lab.submit(lab.bag(["echo two"] * 2, "two.bag")) == 2
    lab.release()
    for bag, tasks in ((1, 3), (2, 2)):
        lab.wait(bag)
        exactly_one_result_each(lab, bag, tasks)


JOURNAL, LOG = "journal.sqlite", "journal.sqlite-wal"


@pytest.mark.parametrize(
    "names",
    [[JOURNAL, LOG], *(pytest.param([name], marks=pytest.mark.nightly) for name in (JOURNAL, LOG))],
)
def test_removed_files_of_the_journal_come_back(held: Lab, names: list[str]) -> None:
    pid = pid_of(held)
    for name in names:
        (held.state / name).unlink()
    until(lambda: all((held.state / name).exists() for name in names), "they are there again")
    goes_on(held, pid)
    os.kill(pid, signal.SIGKILL)
    held.run("daemon", "start")
    assert [bag["state"] for bag in held.ask("status", "all")["bags"]] == ["done", "done"], (
        "all of it was kept"
    )


@pytest.mark.parametrize(
    "content", ["", *(pytest.param(other, marks=pytest.mark.nightly) for other in (None, "{}"))]
)
def test_a_lost_access_file_comes_back(held: Lab, content: str | None) -> None:
    pid = pid_of(held)
    for name in ("access-client.json", "access-worker-local.json", "keys.json"):
        path = next(held.state.glob(name.replace("local", "*")))
        path.unlink() if content is None else path.write_text(content)
    goes_on(held, pid)


def test_an_emptied_access_file_without_a_daemon_is_no_obstacle(held: Lab) -> None:
    os.kill(pid_of(held), signal.SIGKILL)
    (held.state / "access-client.json").write_text("")
    assert "no daemon is running" in held.run("status").stderr
    held.run("daemon", "start")
    goes_on(held, pid_of(held))


@pytest.mark.nightly  # the test below replaces the journal alone
def test_another_folder_in_its_place_ends_the_daemon(held: Lab, tmp_path: Path) -> None:
    away, pid = tmp_path / "away", pid_of(held)
    shutil.copytree(held.state, tmp_path / "backup")
    held.state.rename(away)
    (tmp_path / "backup").rename(held.state)
    log_has(held, "is not this daemon's any more: its lock is not that of this daemon", away)
    until(lambda: not Path(f"/proc/{pid}").exists(), "it ends")
    shutil.rmtree(held.state)
    away.rename(held.state)
    held.run("daemon", "start")
    goes_on(held, pid_of(held))


def test_another_journal_in_its_place_is_left_alone_and_what_was_written_is_kept(held: Lab) -> None:
    pid, other = pid_of(held), held.state / "other"
    other.write_bytes(b"of somebody")
    other.replace(held.state / "journal.sqlite")
    log_has(held, "another file was put in the place of the journal")
    until(lambda: not Path(f"/proc/{pid}").exists(), "it ends")
    assert (held.state / "journal.sqlite").read_bytes() == b"of somebody"
    (kept,) = held.state.glob("journal.replaced-*.sqlite")
    for left in held.state.glob("journal.sqlite*"):
        left.unlink()
    kept.rename(held.state / "journal.sqlite")
    held.run("daemon", "start")
    goes_on(held, pid_of(held))


def test_a_key_with_a_grant_neither_ends_nor_starts_a_daemon(
    held: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.run("mcp", "grant", "ro", "--budget", "1", "--max-proc", "1", "--read-only")
    pid = pid_of(held)
    with monkeypatch.context() as granted:
        granted.setenv("ADAPTOR_KEY", "ro")
        for words in (["stop", "--force"], ["restart"], ["run"], ["install"]):
            assert "unset ADAPTOR_KEY" in held.run("daemon", *words, expect=1).stderr
        held.run("daemon", "stop", expect=2)
    assert pid_of(held) == pid
    os.kill(pid, signal.SIGKILL)
    monkeypatch.setenv("ADAPTOR_KEY", "ro")
    for command in (["daemon", "start"], ["status"], ["submit", "tasks.bag"]):
        assert "unset ADAPTOR_KEY" in held.run(*command, expect=1).stderr


def test_a_folder_without_permission_for_seconds_is_waited_out(lab: Lab) -> None:
    """Root without its capabilities stands for an ordinary user whose ticket has expired."""
    lab.configure(SITE)
    ordinary = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    words = [*ordinary, *lab.command("daemon", "start")]
    subprocess.run(words, env=lab.environment, cwd=lab.work, check=True, capture_output=True)
    lab.submit(lab.bag(["sleep 0.3"] * 40 + [lab.hold()]))
    pid = pid_of(lab)
    with (lab.state / "daemon.log").open(encoding="utf-8") as log:
        lab.state.chmod(0o000)
        try:
            words = [*ordinary, *lab.command("status")]
            refused = subprocess.run(words, env=lab.environment, capture_output=True, text=True, check=False)
            assert refused.returncode == 1
            assert f"is closed to yourself; open it with: chmod 700 {lab.state}" in refused.stderr
            told = "cannot be looked at: Permission denied"
            until(lambda: log.seek(0) == 0 and told in log.read(), "the log says why")
        finally:
            lab.state.chmod(0o700)
    log_has(lab, " again")  # the journal's files are looked at too, and maybe first
    lab.release()
    until(lambda: not lab.ask("status", "--daemon")["stalled"], "the journal can be written")
    assert pid_of(lab) == pid
    lab.wait(1)
    exactly_one_result_each(lab, 1, 41)
