"""Lent nodes that are all this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node_agent.lent_node import LentNodes


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[LentNodes]:
    lent = LentNodes(tmp_path)
    yield lent
    lent.end_all()
