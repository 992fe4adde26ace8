"""What all tests share: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

pytest_plugins = ["tests.clusters.fixtures"]

# A developer's runs search on, each with other examples; a change is judged by the same ones every time.
settings.register_profile("adaptor", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("adaptor")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that they run beside each other and nobody waits for the last one."""
    items.sort(key=lambda item: "test_slurm" not in item.path.name or "e2e" not in item.path.parts)
