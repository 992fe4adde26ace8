"""Periodic work goes on after the time of day was set forward by any time."""

from __future__ import annotations

import datetime

from apscheduler.job import Job
from hypothesis import given
from hypothesis import strategies as st

from adaptor.daemon.timers import Every, new_scheduler

NOW = datetime.datetime(2026, 11, 26, 12, tzinfo=datetime.timezone.utc)


@given(st.floats(0.001, 3600), st.floats(-1e7, 1e8))
def test_the_next_time_is_to_come_and_at_most_an_interval_away(seconds: float, late: float) -> None:
    """Or an interval after one that is still to come."""
    due = NOW - datetime.timedelta(seconds=late)
    following = Every(seconds).get_next_fire_time(due, NOW)
    assert NOW < following <= max(NOW, due) + datetime.timedelta(seconds=seconds)


def test_400_days_are_one_run() -> None:
    """APScheduler asks for each time that has passed before it runs a job once."""
    job = Job(new_scheduler(), trigger=Every(1.0), func=print, args=[], kwargs={}, next_run_time=NOW)
    assert len(job._get_run_times(NOW + datetime.timedelta(days=400))) == 1
