"""A daemon that lives and does not answer: every command tells the same, and there is a way out."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from adaptor.cli import daemon_process
from adaptor.client import asking as client
from adaptor.daemon import lock, process
from adaptor.daemon.lock import holder_of
from adaptor.processes import trees
from tests.cli.invoking import Cli
from tests.e2e.lab import until
from tests.living import is_alive

CONFIG = "sites: {here: {backend: local, processors: 1}}\n"


@pytest.fixture
def daemon(state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[psutil.Process]:
    """A real one."""
    config = tmp_path / "site.yaml"
    config.write_text(CONFIG)
    process.start(state, str(config))
    monkeypatch.setattr(client, "HANDSHAKE_TIMEOUT", 0.3)
    monkeypatch.setattr(client, "SETTLING", 0.3)
    holder = holder_of(state)
    assert holder is not None
    running = psutil.Process(holder.pid)
    yield running
    if running.is_running():
        running.kill()
        running.wait(60)


def test_a_stopped_daemon_is_told_and_ended_by_force(cli: Cli, daemon: psutil.Process, state: Path) -> None:
    assert cli("status", "--daemon").code == 0
    daemon.suspend()
    for words in (
        ("status", "--daemon"),
        ("daemon", "start"),
        ("daemon", "stop"),
        ("status",),
        ("status", "--sites"),
    ):
        outcome = cli(*words)
        assert outcome.code == 1, words
        where = f"(process {daemon.pid} on {socket.gethostname()})"
        assert f"{where} exists but does not answer" in outcome.err
        assert "adaptor daemon stop --force" in outcome.err
    assert daemon.is_running()
    assert cli("daemon", "stop", "--force").out == f"stopped: process {daemon.pid}\n"
    assert not is_alive(daemon)
    assert holder_of(state) is None
    assert cli("daemon", "stop", "--force").out == "no daemon was running\n"


def test_only_a_daemon_that_is_not_stopped_is_waited_for(daemon: psutil.Process, state: Path) -> None:
    holder = holder_of(state)
    assert holder is not None
    assert holder.busy
    daemon.suspend()
    until(lambda: not holder.busy, "it is stopped")
    daemon.kill()
    daemon.wait(60)
    assert not holder.busy


def test_one_that_ignores_sigterm_is_killed(
    cli: Cli, daemon: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_process, "FORCED_GRACE", 0.5)
    real = trees.send

    def lossy(target: object, number: int) -> None:
        if number == signal.SIGKILL:
            real(target, number)  # type: ignore[arg-type]

    monkeypatch.setattr(trees, "send", lossy)
    assert cli("daemon", "stop", "--force").out == f"stopped: process {daemon.pid}\n"


def test_by_force_its_pilots_cannot_be_cancelled(cli: Cli) -> None:
    outcome = cli("daemon", "stop", "--force", "--pilots")
    assert outcome.code == 2
    assert "adaptor daemon stop --pilots" in outcome.err


WRITTEN = [
    '{"host": "login2", "boot": "b", "pid": 1, "ticks": 1}',  # another machine's
    f'{{"host": "{socket.gethostname()}", "boot": "of another day", "pid": 1, "ticks": 1}}',
    "pid 1 on here",  # of another version
    "",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_the_kernel_names_the_holder_whatever_the_file_says(
    cli: Cli, daemon: psutil.Process, state: Path, written: str
) -> None:
    (state / lock.LOCK).write_text(written)
    assert cli("daemon", "stop", "--force").out == f"stopped: process {daemon.pid}\n"
    assert not is_alive(daemon)


@pytest.mark.parametrize("written", WRITTEN)
def test_nobody_is_ended_who_is_not_known_to_be_the_daemon(
    cli: Cli, daemon: psutil.Process, state: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """The kernel has no lock of a process of this machine: the number is one of another machine's."""
    monkeypatch.setattr(lock, "_JUST_TAKEN", 0.0)
    monkeypatch.setattr(lock, "_has_locked", lambda _pid, _file: False)
    (state / lock.LOCK).write_text(written)
    outcome = cli("daemon", "stop", "--force")
    assert outcome.code == 1
    assert "no process of this machine" in outcome.err
    assert daemon.is_running()
