"""The unit of systemd, and the line for cron."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.cli.operating.daemon_install import ServiceUnit, cron_line, unit, unit_in


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
    told = subprocess.run(
        ["systemd-analyze", "--user", "--recursive-errors=no", "verify", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
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
