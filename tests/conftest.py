"""What all tests share: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["tests.clusters.fixtures"]

settings.register_profile("adaptor", deadline=None)
settings.load_profile("adaptor")
