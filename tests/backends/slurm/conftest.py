"""Recorded answers of a real Slurm, and programs that stand in for its commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

_FIXTURES = Path(__file__).parents[3] / "fixtures" / "slurm"


@pytest.fixture
def recorded() -> Callable[[str], str]:
    """The text of a file in fixtures/slurm."""
    return lambda name: (_FIXTURES / name).read_text(encoding="utf-8")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """`fake("sbatch", "exit 1")` puts a shell script of that name in front of all others in PATH."""
    folder = tmp_path / "fake-bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def write(name: str, script: str) -> Path:
        program = folder / name
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
        return program

    return write
