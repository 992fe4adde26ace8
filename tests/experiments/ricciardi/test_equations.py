"""The allocation as the paper prints it, held against trying every allocation."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning import ways as allocating
from adaptor_experiments.ricciardi import equations as paper
from adaptor_experiments.ricciardi.design import STABLE, UNSTABLE
from tests.budget.provisioning.offer_strategies import offers
from tests.examples import examples

TABLE_1, TABLE_2 = ([each.offer for each in table] for table in (STABLE, UNSTABLE))


def throughput(counts, sites):
    return sum(count / each.task.mean for count, each in zip(counts, sites, strict=True))


def production_cost(counts, sites, tasks):
    """C_prod of eq. 8."""
    rate = sum(count * each.price / HOUR for count, each in zip(counts, sites, strict=True))
    return tasks * rate / throughput(counts, sites)


def least_of_all(sites, tasks, seconds):
    """C_prod of the cheapest of all allocations that take no longer."""
    counts = np.meshgrid(*(np.arange(each.processors + 1.0) for each in sites))
    speed = np.maximum(throughput(counts, sites), 1e-12)
    costs = production_cost(counts, sites, tasks)[speed >= tasks / seconds]
    return costs.min(initial=math.inf)


def cases():
    """Few processors, so that all allocations can be tried, and a time that all of them keep."""
    small = offers(most_sites=3).map(
        lambda sites: [
            msgspec.structs.replace(each, processors=min(9, each.processors), charging_unit=0.01)
            for each in sites
        ]
    )
    return st.tuples(small, st.integers(1, 3000), st.floats(1.001, 6.0))


@pytest.mark.filterwarnings("ignore:invalid value")
@examples(60)
@given(cases())
def test_no_allocation_in_the_time_has_a_lower_production_cost(case):
    sites, tasks, more = case
    seconds = paper.least_seconds(tasks, sites) * more
    found = paper.for_time(tasks, sites, seconds)
    assert tasks / throughput(found, sites) <= seconds * (1 + 1e-5)
    assert production_cost(found, sites, tasks) <= least_of_all(sites, tasks, seconds) * (1 + 1e-5)


@pytest.mark.filterwarnings("ignore:invalid value")
@examples(60)
@given(cases())
def test_parts_of_processors_cost_no_more_than_any_constant_allocation(case):
    """What `cheapest` minimises for sites that charge by the second: C_prod, without whole numbers."""
    sites, tasks, more = case
    seconds = paper.least_seconds(tasks, sites) * more
    ways = paper.constant_ways(sites, seconds)
    cost = allocating.cost_of(allocating.least_cost(ways, sites, tasks))
    assert cost <= least_of_all(sites, tasks, seconds) * (1 + 1e-5)


def test_the_least_cost_is_not_that_of_the_least_rate():
    """Less is spent in a second by the second allocation, yet it takes longer and costs more."""
    found, least_rate = paper.for_time(2000, TABLE_1[:3], 57.55), [89, 79, 1]
    assert found == [89, 80, 0]
    assert production_cost(found, TABLE_1[:3], 2000) == pytest.approx(16_851.67, abs=0.01)
    assert production_cost(least_rate, TABLE_1[:3], 2000) == pytest.approx(16_873.22, abs=0.01)
    assert 89 * 1.5 + 80 * 2.0 > 89 * 1.5 + 79 * 2.0 + 1.8


def test_of_equal_costs_the_wished_time_is_kept_with_the_fewest_processors():
    assert paper.for_time(2000, TABLE_1[1:2], 150.0) == [54]


def test_the_least_time_needs_every_processor():
    for sites in (TABLE_1, TABLE_2):
        every = [each.processors for each in sites]
        assert paper.for_time(2000, sites, paper.least_seconds(2000, sites) * (1 + 1e-12)) == every


def test_equations_of_the_paper():
    sites, speed = TABLE_2[:2], 100 / 7 + 80 / 4
    assert paper.least_seconds(2000, sites) == pytest.approx(2000 / speed)
    assert paper.cost_of_least_seconds(2000, sites) == pytest.approx(2000 / speed * (100 * 1.2 + 80 * 2))
    assert paper.least_cost(2000, sites) == pytest.approx((2000 * 8.0, 100.0))
    grid, supercomputer = paper.for_time(2000, sites, 79.0)
    assert supercomputer == 80, "its tasks are the cheapest"
    assert grid / 7 + supercomputer / 4 >= 2000 / 79 > (grid - 1) / 7 + supercomputer / 4
    assert paper.for_time(2000, sites, 58.0) is None
    grid, supercomputer = paper.for_cost(2000, sites, 16_200)
    cost = 2000 * (grid * 1.2 + supercomputer * 2) / (grid / 7 + supercomputer / 4)
    assert 16_100 < cost <= 16_200
    assert paper.for_cost(2000, sites, 15_900) is None
