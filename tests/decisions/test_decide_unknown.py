"""Bags of which nothing is known: what a request that is queued behind the first one costs and saves."""

from __future__ import annotations

import numpy as np

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Limits
from adaptor_experiments.forecasts.site_run import CheckedSite, Outcome, submitted
from adaptor_simulation.jobs import Jobs

HOUR = 3600


def run(tasks: list[float], requests: int, poll: float = 30.0) -> Outcome:
    """At a site that allows so many requests, and where a local job comes after half a day."""
    local = np.array([12 * HOUR]), np.array([10 * HOUR])
    site = CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=1),
        processors=2,
        limits=Limits(max_pending_requests=requests, max_proc=2, max_tr=24 * HOUR),
        heuristic="completion",
        poll=poll,
        jobs=Jobs(
            number=np.array([1]), submit=local[0], run=local[1], estimate=local[1], processors=np.array([2])
        ),
    )
    return submitted(tasks, site, order="random", pays=False, foresees=False).run(longest=100 * HOUR)


def test_a_request_for_tomorrow_costs_nothing_where_the_tasks_are_short() -> None:
    """It is withdrawn when no task waits."""
    assert run([360.0] * 40, requests=2) == run([360.0] * 40, requests=1)


def test_a_request_for_tomorrow_keeps_its_place_before_later_jobs_where_the_tasks_are_long() -> None:
    tasks = [14.0 * HOUR] * 4
    with_it, without = run(tasks, 2, poll=600.0), run(tasks, 1, poll=600.0)
    assert with_it.ended
    assert with_it.end <= without.end - 9 * HOUR
    assert with_it.cost <= without.cost
