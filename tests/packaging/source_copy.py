"""A copy of the source tree with its history, for builds that write into the tree that they build."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.source_tree import ROOT

LONG = 1800.0
"""Seconds in which a command of these tests, and all of a test that builds, must be done: pip installs what
builds need, on a machine that may be busy."""


def copy_source(folder: Path, *, tags: Sequence[str] = ()) -> Path:
    """A clone with the files as they are now, committed, and with these tags only on that commit."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("builds are tested from a git clone")
    git("clone", "--quiet", "--shared", "--no-tags", "--no-checkout", str(ROOT), str(folder), where=ROOT)
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", where=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # another test's, which has removed it
                shutil.copy2(ROOT / name, folder / name)
    git("add", "--all", where=folder)
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    git(*who, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", "as it is now", where=folder)
    for tag in tags:
        git("tag", "--no-sign", tag, where=folder)
    return folder


def git(*words: str, where: Path) -> str:
    return run("git", "-c", f"safe.directory={ROOT}", *words, where=where)


def build(source: Path, into: Path, *kinds: str) -> Path:
    """Build with `python -m build`; the one file that was made last in the folder of its own.

    Args:
        kinds: `--wheel` or `--sdist`.
    """
    run(sys.executable, "-m", "build", *kinds, "--outdir", str(into), str(source), where=into.parent)
    (made,) = into.iterdir()
    return made


def run(*command: str, where: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
