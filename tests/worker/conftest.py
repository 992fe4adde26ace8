from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.fake_daemon import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    made = Harness(tmp_path)
    try:
        yield made
    finally:
        made.stop()
