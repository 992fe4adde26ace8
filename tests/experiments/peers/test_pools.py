"""Managers of workers, against schedules that can be seen at a glance."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from adaptor_experiments.peers.by_hand import ByHand, Site
from adaptor_experiments.peers.pools import POOLS, Pool
from tests.experiments.peers.test_by_hand import RUNTIMES
from tests.simulation.empty_cluster import empty_cluster

POOL = Pool(name="some", limit=10_000, idle=50, queued=4, most=4, request=1.2, width=2)


def test_allocations_are_asked_for_as_tasks_fill_them_and_end_when_idle() -> None:
    assert POOL.run(empty_cluster(4), RUNTIMES, Site(longest=10_000)) == ByHand(
        turnaround=400, jobs=2, held=2 * 250 + 2 * 400
    )


@pytest.mark.parametrize(
    ("request_", "turnaround", "held"),
    [
        pytest.param(None, 650, 2 * 350 + 2 * 300, id="cut, and run again"),
        pytest.param(1.0, 550, 2 * 250 + 2 * 300, id="waits for an allocation that lasts"),
    ],
)
def test_a_task_that_the_rest_of_an_allocation_is_too_short_for(
    request_: float | None, turnaround: int, held: int
) -> None:
    pool = msgspec.structs.replace(POOL, limit=350, most=1, request=request_)
    found = pool.run(empty_cluster(4), np.array([100, 200, 300], np.int64), Site(longest=10_000))
    assert found == ByHand(turnaround=turnaround, jobs=2, held=held)


def test_what_fits_in_no_allocation_is_not_begun() -> None:
    assert POOL.run(empty_cluster(4), RUNTIMES, Site(longest=300)) is None
    assert all(pool.run(empty_cluster(16), RUNTIMES, Site(longest=10_000)) for pool in POOLS)


def test_the_workers_of_an_allocation_start_slowly() -> None:
    found = POOL.run(empty_cluster(4), RUNTIMES, Site(longest=10_000, start=30))
    assert found == ByHand(turnaround=430, jobs=2, held=2 * 280 + 2 * 430)
