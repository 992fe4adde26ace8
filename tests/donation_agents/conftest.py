"""Donated nodes that are all this machine, and the command line as a function."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import cli, state
from tests.donation_agents.donated_nodes import DonatedNodes

__all__ = ["cli", "state"]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[DonatedNodes]:
    nodes = DonatedNodes(tmp_path)
    yield nodes
    nodes.end_all()
