"""The recorded scene of a cluster with memory, GPUs and features."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backends.slurm import parse
from backends.slurm.nodes import Look, SiteNodes, find_site
from backends.slurm.placing.node_details import parse_node_details


@pytest.fixture
def mixed(recorded: Callable[[str], str]) -> SiteNodes:
    """Its partition `batch`."""
    look = Look(details=parse_node_details(recorded("nodes-mixed.txt")))
    return find_site(parse.parse_nodes(recorded("sinfo-mixed.txt")), "batch", look)
