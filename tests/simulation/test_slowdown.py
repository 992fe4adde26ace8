"""Bounded slowdowns by hand."""

from __future__ import annotations

import numpy as np
import pytest

from adaptor_simulation.slowdown import UNHARMED, Slowdowns, mean_slowdown
from adaptor_simulation.what_if import FollowedJobs

WAIT, RUN = np.array([0, 90, 9]), np.array([100, 10, 1])


def test_a_short_job_counts_as_one_of_ten_seconds() -> None:
    assert mean_slowdown(WAIT, RUN) == pytest.approx((1 + 10 + 1) / 3)


def test_per_processor_a_wide_job_may_wait_longer() -> None:
    assert mean_slowdown(WAIT, RUN, np.array([4, 5, 1])) == pytest.approx((1 + 2 + 1) / 3)


def test_no_job_is_slowed() -> None:
    nothing = np.array([], np.int64)
    assert mean_slowdown(nothing, nothing) == 1.0
    assert (UNHARMED.slower, UNHARMED.slower_per_processor) == (1.0, 1.0)


def test_local_jobs_with_a_bag_and_without_it() -> None:
    jobs = FollowedJobs(
        submit=np.array([5, 0]),
        run=np.array([100, 20]),
        processors=np.array([2, 1]),
        without=np.array([5, 20]),
        with_us=np.array([405, 0]),
    )
    assert jobs.added_wait == 380
    assert jobs.slowdowns == Slowdowns(
        slowdown=3.0,
        slowdown_without=1.5,
        slowdown_per_processor=1.75,
        slowdown_per_processor_without=1.5,
    )
    assert (jobs.slowdowns.slower, jobs.slowdowns.slower_per_processor) == (2.0, 1.75 / 1.5)
