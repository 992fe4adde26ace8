"""Recorded answers of a real Slurm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

_FIXTURES = Path(__file__).parents[3] / "fixtures" / "slurm"


@pytest.fixture
def recorded() -> Callable[[str], str]:
    """The text of a file in fixtures/slurm."""
    return lambda name: (_FIXTURES / name).read_text(encoding="utf-8")
