"""Sizes and walltimes of the map, and its cells."""

from __future__ import annotations

import math

import pytest

from adaptor.forecast.start import KnownQueue, QueueFutures, StartRequest
from adaptor.forecast.start_map import sizes, start_of, walltimes
from adaptor.model import QueueState, RunningJob


@pytest.mark.parametrize(
    ("most", "step", "shown"),
    [
        (1, 1, [1]),
        (2, 1, [1, 2]),
        (24, 1, [1, 2, 4, 8, 16, 24]),
        (256, 1, [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        (1728, 1, [1, 4, 16, 64, 256, 1024, 1728]),
        (100, 36, [36, 72]),
        (9, 36, [36]),
    ],
)
def test_sizes_grow_by_a_factor_up_to_the_most(most: int, step: int, shown: list[int]) -> None:
    assert sizes(most, step) == shown


def test_few_sizes_on_the_largest_machines() -> None:
    for most in (10**6, 10**8):
        assert len(sizes(most)) <= 11
        assert sizes(most)[-1] == most


def test_walltimes_end_with_the_limit() -> None:
    assert walltimes(7200.0) == [900.0, 3600.0, 7200.0]
    assert walltimes(600.0) == [600.0]
    assert walltimes()[-1] == walltimes(math.inf)[-1] == 3 * 86400.0


def test_a_cell_is_the_forecast_of_such_a_request() -> None:
    queue = QueueState(now=0.0, processors=8, running=(RunningJob("1", 6, 7200.0),))
    futures = QueueFutures(KnownQueue(queue=queue))
    assert (
        start_of(futures, 4, 3600.0, queue, 1, 0.0)
        == futures.request(StartRequest(processors=4, tr=3600.0)).start
    )
    now = start_of(futures, 2, 3600.0, queue, 1, 0.0)
    assert now is not None
    assert now.value == 0.0
    assert start_of(futures, 16, 3600.0, queue, 1, 0.0) is None, "there are 8"
