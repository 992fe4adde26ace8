"""`daemon install`: all that is written is shown first; without systemd, a line for cron."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import __version__, api
from adaptor.cli.operating import daemon_install
from adaptor.cli.operating.daemon_install import ServiceUnit, cron_line, unit, unit_in
from adaptor.journal.database import open_for_writing
from tests.cli.fake_control import daemon_view
from tests.cli.invoking import Cli, Serve
from tests.living import run_text


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
    cli: Cli, bin_folder: Path, state: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Else it would look after it no more. Its file may name another installation."""
    asked = bin_folder / "asked"
    (bin_folder / "systemctl").write_text(f"#!/bin/sh\necho $* >>{asked}\n")
    open_for_writing(state).close()  # its journal
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


def service(**environment: str) -> ServiceUnit:
    return ServiceUnit(
        name="adaptor",
        program=("/home/a b/bin/adaptor", "--config", '/x/100%"$HOME'),
        environment={"ADAPTOR_DIR": "/state", **environment},
        host="login1",
    )


def test_a_unit_restarts_the_daemon_on_its_host_and_leaves_pilots_alone() -> None:
    lines = unit(service()).splitlines()
    assert "ConditionHost=login1" in lines
    assert "Restart=on-failure" in lines
    assert "KillMode=process" in lines
    assert 'ExecStart="/home/a b/bin/adaptor" "--config" "/x/100%%\\"$$HOME" "daemon" "run"' in lines


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "a b"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    path = tmp_path / "adaptor.service"
    path.write_text(
        unit(ServiceUnit(name="a", program=(str(program),), environment={"A": "50% \\ x"}, host="h"))
    )
    told = run_text(["systemd-analyze", "--user", "--recursive-errors=no", "verify", str(path)])
    assert "adaptor.service:" not in told.stderr, told.stderr


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1), min_size=1))
def test_a_line_of_cron_means_the_words_that_it_was_made_of(words: list[str]) -> None:
    made = ServiceUnit(name="a", program=tuple(words), environment={}, host="h")
    line = cron_line(made)
    assert "%" not in line.replace("\\%", "")
    command = line.removeprefix("@reboot ").replace("\\%", "%").removesuffix(" >/dev/null 2>&1")
    assert shlex.split(command) == ["env", *words, "daemon", "start"]


@pytest.mark.parametrize(
    ("cgroups", "found"),
    [
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/adaptor-1a.service\n", "adaptor-1a"),
        ("1:name=systemd:/user.slice/user@7.service/adaptor.service\n0::/user.slice\n", "adaptor"),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", ""),
        ("0::/system.slice/cron.service\n", ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", ""),
        ("", ""),
    ],
)
def test_the_unit_in_which_a_daemon_runs(cgroups: str, found: str) -> None:
    assert unit_in(cgroups) == found
