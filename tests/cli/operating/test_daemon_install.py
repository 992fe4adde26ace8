"""Where no systemd runs a user instance, cron starts the daemon; all that is written is shown first."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from adaptor import __version__, api
from adaptor.cli.operating import daemon_install
from tests.cli.fake_control import daemon_view
from tests.cli.invoking import Cli, Serve


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's crontab, kept by commands of the test; systemd does not answer."""
    folder, kept = tmp_path / "bin", tmp_path / "crontab.txt"
    folder.mkdir()
    script = (
        f'[ "$1" = -l ] || exec cat >{kept}\n'
        f'[ -e {kept} ] || {{ echo "no crontab for me" >&2; exit 1; }}\ncat {kept}\n'
    )
    for name, text in (
        ("crontab", script),
        ("scrontab", script),
        ("systemctl", "echo Failed to connect to bus >&2; exit 1\n"),
        ("loginctl", "exit 1\n"),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return kept


def test_cron_where_systemd_does_not_answer(cli: Cli, crontab: Path, state: Path) -> None:
    crontab.write_text("0 1 * * * mine\n")
    told = cli("daemon", "install", "--yes")
    assert told.code == 0, told.err
    assert f"ADAPTOR_DIR={state}" in told.out
    first, *block = crontab.read_text().splitlines()
    assert first == "0 1 * * * mine"
    assert block[1].startswith("@reboot env ")
    assert " daemon start >/dev/null 2>&1" in block[1]
    assert block[1] in told.out
    assert cli("daemon", "install", "--yes").code == 0
    assert crontab.read_text().splitlines() == [first, *block], "once is enough"
    assert cli("daemon", "install", "--remove", "--yes").code == 0
    assert crontab.read_text() == "0 1 * * * mine\n"


def test_nothing_is_done_without_a_yes_or_with_show(cli: Cli, crontab: Path) -> None:
    assert cli("daemon", "install", input=b"n\n").code != 0
    assert "@reboot" in cli("daemon", "install", "--show").out
    assert not crontab.exists()


def test_scrontab_if_it_is_asked_for(cli: Cli, crontab: Path) -> None:
    told = cli("daemon", "install", "--yes", "--method", "scrontab", "--scron", "-q workflow")
    assert told.code == 0, told.err
    assert "#SCRON -q workflow" in crontab.read_text()
    assert "*/10 * * * * env" in crontab.read_text()
    refused = cli("daemon", "install", "--scron", "-q workflow")
    assert (refused.code, "--method scrontab" in refused.err) == (2, True)


def test_a_method_that_cannot_be_used_is_told_of(cli: Cli, crontab: Path) -> None:
    told = cli("daemon", "install", "--yes", "--method", "systemd")
    assert told.code == 2
    assert "systemd runs no user instance here" in told.err
    assert "Failed to connect to bus" in told.err
    (crontab.parent / "bin" / "crontab").write_text("#!/bin/sh\necho you are not allowed >&2; exit 1\n")
    told = cli("daemon", "install", "--yes")
    assert told.code == 1
    assert "crontab is refused: you are not allowed" in told.err


def test_a_mistake_in_the_configuration_is_told_before_anything_is_written(
    cli: Cli, crontab: Path, tmp_path: Path
) -> None:
    config = tmp_path / "site.yaml"
    config.write_text("sites: {}\n")
    assert cli("daemon", "install", "--yes", "--config", str(config)).code == 2
    assert not crontab.exists()


@pytest.mark.parametrize("version", [__version__, "0.0.9"])
def test_systemd_restarts_the_daemon_that_it_started(
    cli: Cli, crontab: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Else it would look after it no more. Its file may name another installation."""
    asked = crontab.parent / "asked"
    (crontab.parent / "bin" / "systemctl").write_text(f"#!/bin/sh\necho $* >>{asked}\n")
    monkeypatch.setattr(daemon_install, "_unit_of", lambda _pid: daemon_install.service_name())
    serve({api.GetDaemon: msgspec.structs.replace(daemon_view(), version=version)})
    told = cli("daemon", "restart")
    assert asked.read_text() == f"--user restart {daemon_install.service_name()}\n"
    if version == __version__:
        assert told.out.startswith("restarted: ")
    else:
        assert f"systemd has started version {version}" in told.err
        assert "adaptor daemon install" in told.err
    assert cli("daemon", "restart", "--drop-sites").code == 2
