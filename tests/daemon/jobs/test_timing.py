"""When the next job of a daemon is queued."""

from __future__ import annotations

import pytest

from adaptor.daemon.jobs.timing import lead, looks_apart, pad

HOUR = 3600.0


@pytest.mark.parametrize("walltime", [60.0, 600.0, HOUR, 24 * HOUR, 72 * HOUR])
def test_on_an_empty_cluster_there_are_two_looks_before_the_daemon_ends_itself(walltime: float) -> None:
    assert lead(walltime, 0.0) >= pad(walltime) + 2 * looks_apart(walltime)


def test_a_wait_that_is_foreseen_is_provided_for_with_a_margin() -> None:
    assert lead(24 * HOUR, 2 * HOUR) >= 3 * HOUR


def test_a_successor_that_would_wait_for_a_day_is_queued_at_half_time() -> None:
    assert lead(12 * HOUR, 24 * HOUR) == 6 * HOUR
    assert lead(12 * HOUR, float("inf")) == 6 * HOUR


def test_without_a_forecast_a_quarter_of_the_time_is_left_for_the_wait() -> None:
    assert lead(12 * HOUR, None) >= 3 * HOUR


def test_the_queue_is_looked_at_twelve_times_an_hour_at_most_by_jobs_of_a_day() -> None:
    assert looks_apart(24 * HOUR) == 300.0
    assert looks_apart(60.0) == 10.0
