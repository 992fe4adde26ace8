"""A site of a daemon with a scheduler that says what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.fake_site import FakeSite


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    yield site
    site.journal.close()
