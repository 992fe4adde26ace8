"""The demo is a program of its own, outside the packages: its folder goes on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the demo needs numpy (extra `demo`)")

DEMO = Path(__file__).resolve().parents[2] / "fixtures" / "demo"
sys.path.insert(0, str(DEMO))


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    return DEMO
