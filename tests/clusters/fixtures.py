"""The fixtures of real schedulers: `pytest_plugins = ["tests.clusters.fixtures"]`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.slurm import ThrowawaySlurm, available


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[ThrowawaySlurm]:
    """One real Slurm of 4 nodes with 4 processors for the whole test run."""
    reason = available()
    if reason:
        pytest.skip(reason)
    with ThrowawaySlurm() as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_cluster: ThrowawaySlurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawaySlurm]:
    """The shared cluster with an empty queue and all nodes in service, found by $SLURM_CONF."""
    for name, value in slurm_cluster.env.items():
        monkeypatch.setenv(name, value)
    slurm_cluster.clear()
    yield slurm_cluster
    slurm_cluster.clear()
