"""What all tests share: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

import pytest

from tests.examples import register_profiles

pytest_plugins = ["tests.clusters.fixtures"]

register_profiles()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that they run beside each other and nobody waits for the last one."""
    whole = {"e2e", "campaign"}
    items.sort(key=lambda item: "test_slurm" not in item.path.name or whole.isdisjoint(item.path.parts))
