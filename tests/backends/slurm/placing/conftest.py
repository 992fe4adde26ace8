"""The recorded scene of a cluster with memory, GPUs and features."""

from __future__ import annotations

import pytest

from backends.slurm.questions import Questions, SlurmReading, read
from backends.slurm.rows import QueueRow


@pytest.fixture
def reading(asked: Questions) -> SlurmReading:
    return read(asked, licenses=True)


@pytest.fixture
def rows(reading: SlurmReading) -> dict[str, QueueRow]:
    """By the names of the jobs; of an array, what waits."""
    return {row.name: row for row in reversed(reading.jobs)}
