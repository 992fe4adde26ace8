"""A bag at a simulated site, run by the parts of the daemon that decide."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Limits
from adaptor_experiments.forecasts.site_run import CheckedSite, Outcome, submitted
from tests.examples import examples

BY_THE_SECOND = CheckedSite(tariff=Tariff(price_explicit=3600.0, price_donated=3600.0))
"""A processor-second costs a credit."""


def run_bag(runtimes, site, prefer=None, moments=()) -> Outcome:
    found = submitted(runtimes, site, prefer=prefer).run(list(moments))
    assert found is not None
    return found


def test_one_task_is_charged_from_the_start_of_its_pilot_to_its_end():
    found = run_bag([100.0], BY_THE_SECOND)
    assert found.end == BY_THE_SECOND.startup + 100
    assert found.cost == pytest.approx(115.0)


def test_a_pilot_is_held_until_the_longest_of_its_tasks_ends():
    found = run_bag([100.0, 300.0], BY_THE_SECOND)
    assert found.cost == pytest.approx(2 * 315.0)


def test_what_is_told_is_what_was_known_then():
    found = run_bag([100.0] * 64, BY_THE_SECOND, moments=[32, 40])
    assert [told.at for told in found.told] == sorted(told.at for told in found.told)
    first = found.told[0].forecast
    assert first.cost.holds(found.cost)
    assert first.end.holds(found.end)
    assert first.least <= found.cost


def test_a_task_that_is_cut_runs_again_with_more_time():
    short = CheckedSite(
        tariff=BY_THE_SECOND.tariff,
        limits=Limits(max_pending_requests=2, max_proc=4, max_tr=4000),
        initial_tr=100.0,
    )
    assert run_bag([1000.0] * 3, short).end > 1000


@examples(15)
@given(
    st.lists(st.floats(1, 3000), min_size=1, max_size=60),
    st.sampled_from(["cheap", "balanced", "fast", None]),
    st.sampled_from([1, 60, 3600]),
)
def test_every_bag_ends_and_pays_for_its_work_at_least(runtimes, prefer, unit):
    site = CheckedSite(tariff=Tariff(price_explicit=3600.0, price_donated=3600.0, charging_unit=unit))
    found = run_bag(runtimes, site, prefer)
    assert found.cost >= math.fsum(runtimes) - 1e-3
    assert found.end >= max(runtimes)
