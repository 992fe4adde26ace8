"""What all tests share: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import register_profiles

NIGHTLY = ("campaign", "experiments/commands", "packaging")
"""Folders too long for each change: `make nightly` runs them, with fuzzing, real browsers and Grid Engine."""

pytest_plugins = ["tests.clusters.fixtures"]

register_profiles()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    nightly = [here / folder for folder in NIGHTLY]
    for item in items:
        marked = any(map(item.get_closest_marker, ("fuzz", "browser", "gridengine")))
        if marked or any(folder in item.path.parents for folder in nightly):
            item.add_marker(pytest.mark.nightly)
    # The long ones first, so that they run beside each other and nobody waits for the last one.
    items.sort(key=lambda item: "test_slurm" not in item.path.name or item.path.parent != here / "e2e")
