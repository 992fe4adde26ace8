"""Odd surroundings of a command: no traceback, and the answer as far as the terminal can show it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = f"{sys.executable} -m adaptor.cli"


def run(folder: Path, line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """What a shell line comes to, with an empty state directory."""
    environment = {**os.environ, "ADAPTOR_DIR": str(folder / "state"), "HOME": str(folder), **variables}
    environment.pop("ADAPTOR_CONFIG", None)
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=environment, capture_output=True, timeout=120, check=False
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_locale_without_utf_8_has_help(tmp_path: Path, encoding: str) -> None:
    done = run(tmp_path, f"{COMMAND} submit --help", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'{"argv":' in done.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error(tmp_path: Path, closed: str) -> None:
    done = run(tmp_path, f"{COMMAND} --version {closed}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_standard_input_is_an_empty_one(tmp_path: Path) -> None:
    done = run(tmp_path, f"{COMMAND} submit - <&-")
    assert done.returncode == 2
    assert done.stderr == b"adaptor: standard input: contains no task; write one shell line per task\n"


def test_a_list_that_is_typed_says_how_it_ends(tmp_path: Path) -> None:
    own, terminal = os.openpty()
    try:
        os.write(own, b"echo a\n\x04")
        done = subprocess.run(
            [sys.executable, "-m", "adaptor.cli", "plan", "--commands", "-"],
            stdin=terminal,
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(own)
        os.close(terminal)
    assert (done.returncode, done.stdout) == (0, b"echo a\n")
    assert b"Ctrl-D ends the list" in done.stderr


def test_a_folder_that_is_no_utf_8_is_refused_with_a_way_out(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    done = run(folder, f"{COMMAND} submit -- true")
    assert done.returncode == 2
    assert b"is not UTF-8 text; change to another, or give --cwd" in done.stderr
