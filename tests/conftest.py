"""Fixtures of all tests: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

import os
import sys

import pytest

# Each process of pytest would rewrite the assertions of all tests anew (20 s), and each program that a test
# starts would compile its modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from tests.examples import register_profiles  # noqa: E402

NIGHTLY = ("tests/lab/campaign/", "tests/experiments/commands/", "tests/packaging/")
"""Folders too long for each change: `make nightly` runs them, with what is marked `nightly`, fuzzing, real
browsers and Grid Engine."""
LONG = (
    "tests/e2e/test_slurm_",
    "tests/e2e/",
    "tests/backends/test_contract",
    "tests/security/",
    "tests/experiments/",
)
"""Tests that begin before all else, in this order."""

pytest_plugins = ["tests.clusters.fixtures"]

register_profiles()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = any(map(item.get_closest_marker, ("fuzz", "browser", "gridengine")))
        if marked or item.nodeid.startswith(NIGHTLY):
            item.add_marker(pytest.mark.nightly)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """Turn of a test: those that wait for real schedulers first, then long files, so that the end is not a
    wait for one."""
    for turn, folder in enumerate(LONG):
        if item.nodeid.startswith(folder):
            return turn
    return len(LONG)
