"""The fixtures of real schedulers: `pytest_plugins = ["tests.clusters.fixtures"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from tests.clusters.grid_engine import ThrowawayGridEngine
from tests.clusters.grid_engine import unavailable as grid_engine_unavailable
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.clusters.openpbs import unavailable as openpbs_unavailable
from tests.clusters.openpbs_conf import ClusterOptions
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import MIXED
from tests.clusters.sshd import ThrowawaySshd
from tests.clusters.sshd import available as sshd_available


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[ThrowawaySlurm]:
    """One real Slurm of 4 nodes with 4 processors for the whole test run."""
    yield from _started(available(), ThrowawaySlurm)


@pytest.fixture(scope="session")
def mixed_slurm_cluster() -> Iterator[ThrowawaySlurm]:
    """One real Slurm of 4 nodes of different size, with memory counted and GPUs, for the whole test run."""
    yield from _started(available(), lambda: ThrowawaySlurm(MIXED))


@pytest.fixture
def mixed_slurm(
    mixed_slurm_cluster: ThrowawaySlurm, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThrowawaySlurm]:
    """The mixed cluster with an empty queue and all nodes in service, found by $SLURM_CONF."""
    yield from _at_hand(mixed_slurm_cluster, monkeypatch)


@pytest.fixture(scope="session")
def sshd_server() -> Iterator[ThrowawaySshd]:
    """One real sshd for this user on the loopback, for the whole test run."""
    yield from _started(sshd_available(), ThrowawaySshd)


@pytest.fixture
def sshd(sshd_server: ThrowawaySshd) -> ThrowawaySshd:
    """The shared sshd, at work."""
    if not sshd_server.runs:
        sshd_server.start()
    return sshd_server


@pytest.fixture
def slurm(slurm_cluster: ThrowawaySlurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawaySlurm]:
    """The shared cluster with an empty queue and all nodes in service, found by $SLURM_CONF."""
    yield from _at_hand(slurm_cluster, monkeypatch)


@pytest.fixture(scope="session")
def openpbs_cluster() -> Iterator[ThrowawayOpenPbs]:
    """One real OpenPBS of 4 nodes with 4 processors and 2 GPUs, the third in two vnodes, for all tests."""
    yield from _started(openpbs_unavailable(), lambda: ThrowawayOpenPbs(ClusterOptions(split=(3,), gpus=2)))


@pytest.fixture
def openpbs(openpbs_cluster: ThrowawayOpenPbs, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawayOpenPbs]:
    """The shared cluster with no jobs and all nodes in service, found by $PBS_CONF_FILE and $PATH."""
    yield from _at_hand(openpbs_cluster, monkeypatch)


@pytest.fixture(scope="session")
def gridengine_cluster() -> Iterator[ThrowawayGridEngine]:
    """One real Grid Engine of 4 hosts with 4 slots and 4 GB for all tests."""
    yield from _started(grid_engine_unavailable(), ThrowawayGridEngine)


@pytest.fixture
def gridengine(
    gridengine_cluster: ThrowawayGridEngine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThrowawayGridEngine]:
    """The shared cluster with no jobs and all hosts in service, found by $SGE_ROOT and $PATH."""
    yield from _at_hand(gridengine_cluster, monkeypatch)


@pytest.fixture
def own_slurm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawaySlurm]:
    """A Slurm of the test's own, by the options that are the parameter."""
    for cluster in _started(available(), lambda: ThrowawaySlurm(request.param)):
        yield from _at_hand(cluster, monkeypatch)


_Made = TypeVar("_Made", ThrowawaySlurm, ThrowawayOpenPbs, ThrowawayGridEngine, ThrowawaySshd)
_Cluster = TypeVar("_Cluster", ThrowawaySlurm, ThrowawayOpenPbs, ThrowawayGridEngine)


def _started(unavailable: str | None, make: Callable[[], _Made]) -> Iterator[_Made]:
    if unavailable:
        pytest.skip(unavailable)
    with make() as made:
        yield made


def _at_hand(cluster: _Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Cluster]:
    for name, value in cluster.env.items():
        monkeypatch.setenv(name, value)
    cluster.clear()
    yield cluster
    cluster.clear()
