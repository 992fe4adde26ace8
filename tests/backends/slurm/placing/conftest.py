"""The recorded scene of a cluster with memory, GPUs and features."""

from __future__ import annotations

import pytest

from backends.slurm.nodes import Look, PartitionNodes, find_site
from backends.slurm.questions import Questions, SlurmReading, read
from backends.slurm.rows import QueueRow


@pytest.fixture
def reading(asked: Questions) -> SlurmReading:
    return read(asked, licenses=True)


@pytest.fixture
def mixed(asked: Questions) -> PartitionNodes:
    """Its partition `batch`."""
    return find_site(asked.nodes(), "batch", Look(details=asked.node_details()))


@pytest.fixture
def rows(reading: SlurmReading) -> dict[str, QueueRow]:
    """By the names of the jobs; of an array, what waits."""
    return {row.name: row for row in reversed(reading.jobs)}
