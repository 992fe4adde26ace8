"""What stands between a contributor and the repository: the hook of git, and the workflow of a forge."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.source_tree import ROOT

HOOKS = ROOT / ".ci" / "hooks"


def commit(folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", f"core.hooksPath={HOOKS}"]
    command = ["git", *words, "commit", "--allow-empty", "-m", "a change"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


def test_a_commit_without_the_environment_says_how_to_get_it(clone: Path) -> None:
    done = commit(clone)
    assert done.returncode == 1
    assert "make dev" in done.stderr


@pytest.mark.parametrize("failing", ["", "ruff", "mypy"])
def test_a_commit_needs_ruff_and_mypy(clone: Path, failing: str) -> None:
    folder = clone / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("ruff", "mypy"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} $*\nexit {int(name == failing)}\n")
        (folder / name).chmod(0o755)
    done = commit(clone)
    assert (done.returncode != 0) == bool(failing)
    said = done.stdout + done.stderr
    assert "ruff check ." in said
    assert ("mypy" in said) == (failing != "ruff")


def test_a_forge_runs_what_a_developer_runs() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    (workflow,) = (ROOT / ".github" / "workflows").glob("*.yml")
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    run = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert ".ci/run" in run
    assert run - {".ci/run"} <= {f"make {target}" for target in targets}
    assert {"make quick", "make docs", "make nightly"} <= run
