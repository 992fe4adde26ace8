"""`make releases`, with a stand-in for the chroots."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.clusters import releases

RESULTS = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">
<testsuite name="pytest" errors="1" failures="1" skipped="1" tests="5" time="61.7">
<testcase classname="tests.a" name="test_well" time="0.1" />
<testcase classname="tests.a" name="test_too"><system-out>much</system-out></testcase>
<testcase classname="tests.a" name="test_bad"><failure message="assert 1 == 2&#10; + x">.</failure></testcase>
<testcase classname="tests.a" name="test_rig"><error message="no sshd">...</error></testcase>
<testcase classname="tests.a" name="test_left"><skipped message="no Slurm">...</skipped></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Answers as in-debian does; `bullseye` has no packages, and of `forky` no results come."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "results.xml").write_text(RESULTS)
    path = tmp_path / "in-debian"
    path.write_text(
        """#!/bin/bash
        echo "$*" >>asked
        case "$1 $5" in
            bullseye*) exit 100;;
            *pytest*) exit 1;;
        esac
        echo "cannot delete non-empty directory: old"
        bash -c "${5%%;*}"
        case "$1 $5" in
            forky*cat*) echo "cat: no such file" >&2; exit 1;;
            *cat*) cat results.xml;;
            *) printf 'slurm 26.05.5\\nPython 3.14.10\\n';;
        esac
        """
    )
    path.chmod(0o700)
    return path


def test_each_release_has_its_line(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        releases.main(["--on", "sid", "--on", "bullseye", "--on", "forky", "tests/x", "-k", "y"], tool) == 1
    )
    assert capsys.readouterr().out.splitlines() == [
        "sid: the output is in build/releases/sid.log",
        "  failed: tests.a::test_bad: assert 1 == 2",
        "  failed: tests.a::test_rig: no sshd",
        "bullseye: the output is in build/releases/bullseye.log",
        "forky: the output is in build/releases/forky.log",
        "sid (slurm 26.05.5, Python 3.14.10): 2 passed, 2 failed, 1 skipped in 62 s",
        "bullseye: no result: exit status 100, see build/releases/bullseye.log",
        "forky: no result: the results of pytest cannot be read: no element found: line 1, column 0",
    ]
    assert "pytest tests/x -k y\n" in Path("asked").read_text()


def test_all_well(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = '<testsuite tests="1" time="2"><testcase classname="a" name="b" /></testsuite>'
    Path("results.xml").write_text(f"<testsuites>{suite}</testsuites>")
    assert releases.main([], tool) == 0
    out = capsys.readouterr().out
    assert [out.count(f"{suite} (slurm 26.05.5") for suite in releases.SUITES] == [1, 1, 1]
    assert "pytest -m slurm\n" in Path("asked").read_text()


def test_it_says_what_is_missing(
    tool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert releases.main([], tool / "none") == 2
    assert "none not found: it runs a command in a copy of this folder" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert releases.main([], tool) == 2
    assert "needs root" in capsys.readouterr().err
