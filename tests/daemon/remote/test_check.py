"""`adaptor site check` of a site that is reached over ssh."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor.config.loading import parse_config
from adaptor.config.schema import SiteConfig
from adaptor.daemon.remote.check import check_where_it_is
from backends.findings import Finding, ok
from backends.machines.base import Machine
from tests.clusters.sshd import ThrowawaySshd, available

pytestmark = pytest.mark.ssh


@pytest.fixture
def found(sshd: ThrowawaySshd, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str]]]:
    """The findings on a site like this, and that the scheduler is asked where all is well."""
    monkeypatch.setattr("adaptor.daemon.remote.check._SLOW", math.inf)  # a busy machine is

    def check(site: SiteConfig, machine: Machine) -> list[Finding]:
        return [ok(f"asked {machine.where}")]

    def find(python: str = sys.executable, **changes: Any) -> list[tuple[str, str]]:
        site = {"backend": "slurm", "python": python, "ssh": {**sshd.site(), **changes}}
        config = parse_config(msgspec.json.encode({"sites": {"far": site}}).decode(), "c.yaml")
        return [(each.level, each.text) for each in check_where_it_is(config.sites["far"], check)]

    return find


def test_all_is_well(found: Callable[..., list[tuple[str, str]]]) -> None:
    findings = found()
    assert {level for level, _ in findings} == {"ok"}
    words = [" ".join(text.split()[:2]) for _, text in findings]
    assert words == ["ssh 127.0.0.1", f"python ({sys.executable})", words[2], "a tunnel", "asked on"]
    assert words[2].endswith(".adaptor there")


def test_without_forwarding_the_way_out_is_named_and_works() -> None:
    if reason := available():
        pytest.skip(reason)
    with ThrowawaySshd(options="AllowTcpForwarding no") as closed:
        site = {"backend": "slurm", "python": sys.executable, "ssh": closed.site()}
        assert "no tunnel was opened on 127.0.0.1" in texts(site)[-1]
        assert texts(site)[-1].endswith(
            "if its sshd forbids forwarding, give the site a folder there as `spool`"
        )
        assert not any("tunnel" in text for text in texts({**site, "spool": "mail"}))


def texts(site: dict[str, Any]) -> list[str]:
    config = parse_config(msgspec.json.encode({"sites": {"far": site}}).decode(), "c.yaml")
    return [each.text for each in check_where_it_is(config.sites["far"], lambda _site, _machine: [])]


def test_no_python_or_not_this_package(found: Callable[..., list[tuple[str, str]]], tmp_path: Path) -> None:
    assert found("/no/such/python")[-1][0] == "error"
    assert "/no/such/python: cannot be run on 127.0.0.1" in found("/no/such/python")[-1][1]
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    assert "lacks this package; install the adaptor for it" in found(str(bare))[-1][1]
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 0.0.1\n")
    old.chmod(0o755)
    assert "has version 0.0.1 of this package" in found(str(old))[-1][1]


def test_a_folder_that_is_open_to_others(found: Callable[..., list[tuple[str, str]]], tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    level, text = found(directory=str(tmp_path / "open"))[-1]
    assert level == "error"
    assert text.startswith(f"{tmp_path}/open on 127.0.0.1: is open to other users; close it with")


def test_a_machine_that_is_not_there_is_the_only_finding(
    found: Callable[..., list[tuple[str, str]]],
) -> None:
    ((level, text),) = found(port=1)
    assert level == "error"
    assert "cannot connect" in text
