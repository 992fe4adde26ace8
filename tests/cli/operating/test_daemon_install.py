"""`daemon install`: all that is written is shown first; without systemd, a line for cron."""

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
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first folder of PATH, with a systemd that does not answer."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("systemctl", "loginctl"):
        (folder / name).write_text("#!/bin/sh\necho Failed to connect to bus >&2; exit 1\n")
        (folder / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_where_systemd_does_not_answer_a_line_for_cron_is_printed(
    cli: Cli, bin_folder: Path, state: Path
) -> None:
    told = cli("daemon", "install", "--yes")
    assert told.code == 1
    assert "systemd runs no user instance here" in told.err
    assert "Failed to connect to bus" in told.err
    assert "crontab -e): @reboot env " in told.err
    assert f"ADAPTOR_DIR={state}" in told.err
    assert " daemon start >/dev/null 2>&1" in told.err


def test_nothing_is_done_without_a_yes_or_with_show(cli: Cli, bin_folder: Path) -> None:
    asked = bin_folder / "asked"
    assert "enable" in cli("daemon", "install", "--show").out
    (bin_folder / "systemctl").write_text(f"#!/bin/sh\necho $2 >>{asked}\n")
    assert cli("daemon", "install", input=b"n\n").code != 0
    assert asked.read_text() == "show-environment\n"


def test_a_mistake_in_the_configuration_is_told_before_anything_is_written(
    cli: Cli, bin_folder: Path, tmp_path: Path
) -> None:
    config = tmp_path / "site.yaml"
    config.write_text("sites: {}\n")
    assert cli("daemon", "install", "--yes", "--config", str(config)).code == 2


@pytest.mark.parametrize("version", [__version__, "0.0.9"])
def test_systemd_restarts_the_daemon_that_it_started(
    cli: Cli, bin_folder: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Else it would look after it no more. Its file may name another installation."""
    asked = bin_folder / "asked"
    (bin_folder / "systemctl").write_text(f"#!/bin/sh\necho $* >>{asked}\n")
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
