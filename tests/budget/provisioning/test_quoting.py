"""Quotes: the sample that is taken, and the price of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.quoting import (
    REPLICATED,
    SampleTerms,
    SiteSample,
    most_processors,
    quote,
    sample_places,
    sample_size,
)

NEAR = SampleTerms(price=10.0, charging_unit=1.0, processors=4)
FAR = SampleTerms(price=20.0, charging_unit=1.0, processors=4)


@given(st.integers(1, 300), st.integers(1, 4), st.integers())
def test_a_sample_has_each_task_once_and_some_on_all_sites(tasks: int, count: int, seed: int) -> None:
    sites = [f"site{number}" for number in range(count)]
    places = sample_places(tasks, sites, seed)
    assert list(places) == sites
    assert all(len(set(each)) == len(each) for each in places.values())
    assert len({place for each in places.values() for place in each}) == sample_size(tasks)
    common = set.intersection(*map(set, places.values()))
    assert len(common) == (sample_size(tasks) if count == 1 else min(REPLICATED, sample_size(tasks)))
    assert sample_places(tasks, sites, seed) == places


def test_no_task_and_no_site_have_no_sample() -> None:
    with pytest.raises(BudgetError):
        sample_places(0, ["a"], 1)
    with pytest.raises(BudgetError):
        sample_places(5, [], 1)


def test_the_rest_is_quoted_by_what_the_samples_have_shown() -> None:
    near = SiteSample(dict.fromkeys(range(7), 60.0), startup=2.0)
    far = SiteSample(dict.fromkeys(range(7), 60.0) | {8: 90.0}, startup=0.0)
    found = quote(20, 1, {"near": near, "far": far}, {"near": NEAR, "far": FAR})
    assert found.rest == [7, *range(9, 20)]
    assert list(found.lines[0].processors) == ["near"], "the cheaper site"


def test_tasks_of_two_processors_pay_for_two_and_half_as_many_fit() -> None:
    sample = {"near": SiteSample(dict.fromkeys(range(7), 3600.0), startup=0.0)}
    for cpus, slots in ((1, 4), (2, 2)):
        lines = quote(11, cpus, sample, {"near": NEAR}).lines
        assert lines[0].cost.value >= 4 * 10.0 * cpus, "four tasks of an hour"
        assert lines[-1].processors == {"near": slots}


def test_processors_by_limits_and_size() -> None:
    assert most_processors(2, 8, None) == 16
    assert most_processors(2, 8, 10) == 10
    assert most_processors(None, None, 5) == 1
