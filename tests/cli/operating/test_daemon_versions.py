"""A daemon of another version: it is shown, ended, followed by ours; all else is refused."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from adaptor import __version__, api
from adaptor.cli import daemon_process
from adaptor.client import asking
from adaptor.client.asking import DaemonConnection, OtherVersionError
from adaptor.daemon import process
from adaptor.errors import AdaptorError
from adaptor.journal.database import open_for_writing
from adaptor.protocol.access import CLIENT_ACCESS
from tests.api.other_daemon import OtherDaemon, recorded
from tests.cli.invoking import Cli, Serve
from tests.cli.operating.test_daemon import daemon
from tests.daemon.test_lock import HOLD
from tests.living import until

__all__ = ["daemon"]
EARLIER = "0.1.0.dev955+gc7dfdb140"
HERE = {"host": socket.gethostname(), "config_file": "", "config_digest": ""}


@pytest.fixture(params=["", "2-another"])
def other(state: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., OtherDaemon]]:
    """Makes a daemon of an earlier version, and one of a later one, which names another protocol."""
    made: list[OtherDaemon] = []

    open_for_writing(state).close()  # its journal

    def make(**options: Any) -> OtherDaemon:
        made.append(OtherDaemon(state, recorded(), protocol=request.param, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_it_is_shown(cli: Cli, other: Callable[..., OtherDaemon]) -> None:
    server = other(changes={"workers": 3, "unfinished": 2, "stalled": "the disk is full", "new": [1]})
    told = cli("status", "--daemon")
    assert told.code == 0
    assert f"version {EARLIER}, 3 workers, 2 unfinished bags" in told.out
    assert "adaptor daemon restart" in told.out
    assert "stalled: the disk is full" in told.out
    assert cli("status", "--daemon", "--json").value["journal"] is None
    started = cli("daemon", "start")
    assert started.out.startswith("already running: ")
    assert f"it has version {EARLIER}, this command {__version__}" in started.out
    assert set(server.asked) == {"GetDaemon"}


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "status --json",
        "status --sites",
        "results 1",
        "submit tasks.bag",
        "cancel 1",
        "watch 1",
        "why",
    ],
)
def test_all_else_is_refused_with_the_way_out(
    cli: Cli, other: Callable[..., OtherDaemon], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No question of ours reaches it."""
    monkeypatch.chdir(tmp_path)
    Path("tasks.bag").write_text("true\n")
    server = other()
    outcome = cli(*command.split())
    assert outcome.code == 1
    assert f"(process {recorded_pid()}) has version {EARLIER}" in outcome.err
    assert f"version {__version__} can only show and end it" in outcome.err
    assert "adaptor daemon restart" in outcome.err
    assert set(server.asked) == {"GetDaemon"}


def test_status_shows_it(cli: Cli, other: Callable[..., OtherDaemon]) -> None:
    other(changes={"workers": 3})
    outcome = cli("status")
    assert outcome.code == 1
    assert outcome.lines[0] == f"daemon on login1 (process {recorded_pid()}), version {EARLIER}, 3 workers"
    assert outcome.lines[1].startswith("since ")


def test_a_program_that_outlives_its_daemons_version_is_told_so(state: Path) -> None:
    """To have the daemon restarted in its version would be to go back."""
    first = OtherDaemon(state, {}, protocol=api.PROTOCOL)
    connection = DaemonConnection(state)
    with pytest.raises(AdaptorError, match="was not recorded"):
        connection.ask(api.Cancel([1]))
    first.close()
    following = OtherDaemon(state, recorded(), protocol="2-another")
    with pytest.raises(OtherVersionError, match=r"start the program again; its bags continue") as told:
        connection.ask(api.Cancel([1]))
    assert "daemon restart" not in str(told.value)
    connection.close()
    following.close()


def recorded_pid() -> int:
    question = api.encode_question(api.GetDaemon())
    return api.decode_answer(api.GetDaemon(), recorded()[question]).pid


def test_it_is_stopped(cli: Cli, other: Callable[..., OtherDaemon]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim:
        server = other(changes={**HERE, "pid": victim.pid}, on_stop=lambda: victim.communicate(b"\n"))
        assert cli("daemon", "stop").out == f"stopped: process {victim.pid}\n"
    assert server.asked == ["GetDaemon", "Stop"]


def test_it_is_followed_by_one_of_this_version(
    cli: Cli,
    other: Callable[..., OtherDaemon],
    serve: Serve,
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the configuration of the last one, and ending as the last one would."""
    config = tmp_path / "mine.yaml"
    config.write_text("sites: {here: {backend: local, processors: 1}}\n")
    began: list[tuple[str | None, bool, bool]] = []

    def start(_directory: Path, config: str | None, until_idle: bool, *, drop_sites: bool) -> None:
        began.append((config, until_idle, drop_sites))
        serve({})

    def end() -> None:
        victim.communicate(b"\n")
        (state / CLIENT_ACCESS).unlink()

    monkeypatch.setattr(process, "start", start)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim:
        changes = {**HERE, "pid": victim.pid, "config_file": str(config), "until_idle": True}
        other(changes=changes, on_stop=end)
        outcome = cli("daemon", "restart")
    assert outcome.out.startswith(f"restarted: daemon on {socket.gethostname()} (process {os.getpid()})")
    assert began == [(str(config), True, False)]


def test_it_goes_on_if_its_configuration_cannot_be_used(
    cli: Cli, other: Callable[..., OtherDaemon], tmp_path: Path
) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("sites: {here: {backend: local, processors: none}}\n")
    server = other(changes={**HERE, "config_file": str(config)})
    outcome = cli("daemon", "restart")
    assert outcome.code == 2
    assert "mine.yaml:1" in outcome.err
    assert set(server.asked) == {"GetDaemon"}


def test_one_of_another_machine_is_not_moved_here(cli: Cli, other: Callable[..., OtherDaemon]) -> None:
    server = other()
    outcome = cli("daemon", "restart")
    assert "the daemon runs on login1: run `adaptor daemon restart` there" in outcome.err
    assert set(server.asked) == {"GetDaemon"}


def test_where_none_runs_one_is_started(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "start", lambda *_arguments, **_options: serve({}) and None)
    assert cli("daemon", "restart").out.startswith("started: daemon on ")


def test_one_whose_files_were_overwritten_writes_them_again(
    cli: Cli, daemon: psutil.Process, state: Path
) -> None:
    (state / CLIENT_ACCESS).write_text('{"address": "tcp://127.0.0.1:1", "key": "k"}')
    (state / "daemon.lock").write_text(f"pid {daemon.pid} on here")
    until(lambda: b"addresses" in (state / CLIENT_ACCESS).read_bytes(), "it is written again")
    assert cli("daemon", "stop", "--pilots").out == f"stopped: process {daemon.pid}\n"
    assert "stopped" in (state / "daemon.log").read_text(), "it ended in order"


def test_one_that_writes_another_access_file_is_ended_by_a_signal(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / CLIENT_ACCESS).write_text('{"address": "tcp://127.0.0.1:1", "key": "k"}')
    (state / CLIENT_ACCESS).chmod(0o600)
    monkeypatch.setattr(asking, "SETTLING", 0.0)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(state)], stdin=-1, stdout=-1) as held:
        assert held.stdout is not None
        held.stdout.readline()
        refused = cli("daemon", "stop", "--pilots")
        assert refused.code == 1, "no signal says that"
        assert "stop --force" in refused.err
        assert cli("daemon", "stop").out == f"stopped: process {held.pid}\n"


def test_one_that_does_not_end_by_a_signal_is_told(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / CLIENT_ACCESS).write_text("{}")
    (state / CLIENT_ACCESS).chmod(0o600)
    monkeypatch.setattr(daemon_process, "STOP_TIMEOUT", 0.1)
    monkeypatch.setattr(asking, "SETTLING", 0.0)
    hold = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {HOLD}"
    with subprocess.Popen([sys.executable, "-c", hold, str(state)], stdin=-1, stdout=-1) as held:
        assert held.stdout is not None
        held.stdout.readline()
        outcome = cli("daemon", "stop")
        assert held.poll() is None
        held.send_signal(signal.SIGKILL)
    assert "does not end; it still runs after 0.1 s" in outcome.err
