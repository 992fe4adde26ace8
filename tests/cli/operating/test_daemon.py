"""`daemon`: start, run, restart and stop; `status --daemon`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from adaptor import __version__, api
from adaptor.cli import daemon_process
from adaptor.cli.operating import daemon as daemon_module
from adaptor.client import asking
from adaptor.client import asking as client
from adaptor.client.asking import StartingDaemonError, ask
from adaptor.config.loading import digest_of
from adaptor.daemon import lock, process
from adaptor.daemon.lock import LockHeldError, holder_of
from adaptor.errors import VanishedSitesError
from adaptor.processes import trees
from tests.cli.fake_control import daemon_view
from tests.cli.invoking import Cli, Serve
from tests.daemon.test_lock import HOLD
from tests.living import PATIENCE, is_alive, until


def test_daemon_status_and_start(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []

    def start(directory: Path, config: str | None, until_idle: bool, *, drop_sites: bool) -> Path:
        assert not drop_sites
        started.append(until_idle)
        serve({})
        return Path("/my/site.yaml")

    monkeypatch.setattr(process, "start", start)
    assert cli("status", "--daemon").code == 1
    outcome = cli("daemon", "start", "--until-idle")
    assert outcome.out.startswith("started: daemon on ")
    assert "\nconfiguration " in outcome.out
    assert "the daemon uses /my/site.yaml, as the last one did (--config FILE names another)" in outcome.err
    assert cli("daemon", "start").out.startswith("already running: ")
    assert started == [True]
    assert cli("daemon", "start", "--json").value["started"] is False
    told = cli("status", "--daemon").out
    assert f"version {__version__}, 2 workers" in told
    assert "journal: 3M, 12 bags since" in told
    assert "kept until `adaptor forget`" in told
    assert "memory: 48M" in told
    assert "50 results, journal -2K, 240 scheduler commands, 9.5 CPU seconds" in told
    assert cli("status", "--daemon", "--json").value["addresses"] == ["tcp://127.0.0.1:5"]


def test_a_daemon_that_another_command_starts_meanwhile_is_used(
    cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one has ended before it could be asked, the second one answers."""
    others = iter([lambda: None, lambda: serve({})])

    def start(*_arguments: object, **_options: object) -> None:
        next(others)()
        raise LockHeldError("another daemon is starting")

    monkeypatch.setattr(process, "start", start)
    assert cli("daemon", "start").out.startswith("already running: ")
    assert next(others, None) is None


def test_a_daemon_that_is_starting_is_waited_for(
    cli: Cli, serve: Serve, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process holds the lock, and nothing listens yet: longer than one that is stopped is waited for."""
    monkeypatch.setattr(asking, "SETTLING", 0.0)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(state)], stdin=-1, stdout=-1) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        seen: list[StartingDaemonError] = []

        def look(_question: api.GetDaemon) -> api.DaemonView:
            try:
                return ask(api.GetDaemon())
            except StartingDaemonError as starting:
                seen.append(starting)
                if len(seen) == 3:
                    serve({})
                raise

        monkeypatch.setattr(asking, "ask", look)
        outcome = cli("daemon", "start")
        daemon.communicate(b"\n")
    assert outcome.out.startswith("already running: ")
    assert len(seen) == 3


def test_a_daemon_that_leaves_with_the_question_is_asked_again(cli: Cli, serve: Serve) -> None:
    """It begins anew, after a reload or because the clock was set."""
    server = serve({})

    def leave(_question: api.GetDaemon) -> None:
        serve({})
        server.leave()

    server.answers[api.GetDaemon] = leave
    assert cli("daemon", "start").out.startswith("already running: ")


def test_a_restart_takes_over_an_edited_configuration(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    """The process stays; without an edit it is a restart."""
    config = tmp_path / "site.yaml"
    config.write_text("sites: {}\n")
    edited = msgspec.structs.replace(daemon_view(), config_file=str(config), config_digest="before")
    server = serve({api.GetDaemon: edited})

    def reload(_: api.Reload) -> api.Reloading:
        digest = digest_of(config)
        server.answers[api.GetDaemon] = msgspec.structs.replace(edited, config_digest=digest)
        return api.Reloading(str(config), digest, ["new"], [], ["here", "there"], [])

    server.answers[api.Reload] = reload
    first, *_ = cli("daemon", "restart").lines
    assert first.startswith("configuration taken over (added new; changed here, there): daemon on ")
    server.answers[api.GetDaemon] = edited
    assert cli("daemon", "restart", "--json").value["changes"]["added"] == ["new"]
    server.answers[api.Reload] = api.Failure("site.yaml:1: no such key", usage=True)
    server.answers[api.GetDaemon] = edited
    outcome = cli("daemon", "restart")
    assert outcome.code != 0
    assert "site.yaml:1: no such key" in outcome.err
    assert server.asked(api.Stop) == []


def test_daemon_run_hands_the_exit_code_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", lambda directory, config, until_idle, drop_sites: int(until_idle))
    assert cli("daemon", "run").code == 0
    assert cli("daemon", "run", "--until-idle").code == 1


def test_sites_that_vanish_are_asked_about(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal; elsewhere an option has to say it."""
    terminal = False

    def start(*_arguments: object, drop_sites: bool) -> None:
        if not drop_sites:
            raise VanishedSitesError("hpc would be no site any more")
        serve({})

    monkeypatch.setattr(process, "start", start)
    monkeypatch.setattr(daemon_module, "_is_terminal", lambda: terminal)
    outcome = cli("daemon", "start")
    assert (outcome.code, outcome.err) == (2, "adaptor: hpc would be no site any more\n")
    terminal = True
    outcome = cli("daemon", "start", input=b"n\n")
    assert outcome.code == 130
    assert "hpc would be no site any more\ngo on without it now? [y/N]" in outcome.err
    assert cli("daemon", "start", input=b"y\n").out.startswith("started: ")
    assert cli("daemon", "start", "--drop-sites").out.startswith("already running: ")


def test_daemon_stop_waits_for_the_process(cli: Cli, serve: Serve) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim:

        def stop(_: api.Stop) -> None:
            victim.communicate(b"\n")

        server = serve({api.Stop: stop, api.GetDaemon: daemon_view(victim.pid)})
        outcome = cli("daemon", "stop", "--pilots")
    assert outcome.out == f"stopped: process {victim.pid}\n"
    assert server.asked(api.Stop) == [api.Stop(pilots=True)]


def test_daemon_stop_where_none_runs(cli: Cli) -> None:
    assert cli("daemon", "stop").out == "no daemon was running\n"
    assert cli("daemon", "stop", "--json").value == {"stopped": None, "jobs": []}


def test_a_daemon_that_does_not_end_is_told(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_process, "STOP_TIMEOUT", 0.1)
    server = serve({api.Stop: None})  # Its process is this one.
    outcome = cli("daemon", "stop")
    assert outcome.code == 1
    assert f"on {socket.gethostname()}) does not end; it still runs" in outcome.err
    elsewhere = daemon_view()
    fields = {field: getattr(elsewhere, field) for field in elsewhere.__struct_fields__}
    server.answers[api.GetDaemon] = type(elsewhere)(**{**fields, "host": "login2"})
    assert "on login2) does not end; it still runs" in cli("daemon", "stop").err


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
        running.wait(PATIENCE)


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
    daemon.wait(PATIENCE)
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
