"""Donated nodes that are all this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node_agent.donated_nodes import DonatedNodes


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[DonatedNodes]:
    nodes = DonatedNodes(tmp_path)
    yield nodes
    nodes.end_all()
