"""What all tests share: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

import os
import sys

import pytest

# Each process of pytest would rewrite the assertions of all tests anew (20 s), and each program that a test
# starts would compile its modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from tests.examples import register_profiles  # noqa: E402

NIGHTLY = ("tests/campaign/", "tests/experiments/commands/", "tests/packaging/")
"""Folders too long for each change: `make nightly` runs them, with what is marked `nightly`, fuzzing, real
browsers and Grid Engine."""
MINUTES = "test_a_job_ends_at_its_time_limit[slurm_wrappers]"
"""Of a contract all of whose other tests are short."""

pytest_plugins = ["tests.clusters.fixtures"]

register_profiles()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = any(map(item.get_closest_marker, ("fuzz", "browser", "gridengine")))
        if marked or item.nodeid.startswith(NIGHTLY) or item.name == MINUTES:
            item.add_marker(pytest.mark.nightly)
    # Those that wait for real schedulers first, side by side, so that in the end nobody waits for the last.
    items.sort(key=_is_long)


def _is_long(item: pytest.Item) -> int:
    whole = item.nodeid.startswith("tests/e2e/")
    return -(whole + (whole and "test_slurm" in item.nodeid))
