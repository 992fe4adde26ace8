"""Samples of a bag, and what they teach about every site."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.quoting import compact_samples, learn, regression, sample_size

SITES = ("slow", "middle", "fast")


def test_thirty_tasks_describe_any_bag():
    assert sample_size(100_000) == 30
    assert sample_size(100_000, precision=0.1) > 400
    assert sample_size(12) == 12


@given(st.integers(1, 10**6), st.floats(0.01, 1), st.floats(0.5, 0.999))
def test_a_sample_is_no_larger_than_its_bag(tasks, precision, confidence):
    assert min(tasks, 30) <= sample_size(tasks, precision, confidence) <= tasks


def test_the_mean_of_a_sample_is_as_precise_as_promised():
    draw = np.random.default_rng(1)
    bag = draw.exponential(100.0, 5000)
    means = draw.choice(bag, (4000, sample_size(5000, 0.25, 0.9))).mean(axis=1)
    close = np.abs(means - bag.mean()) <= 0.25 * bag.std()
    assert 0.87 < close.mean() < 0.93


@pytest.mark.parametrize(("tasks", "precision", "confidence"), [(0, 0.4, 0.9), (5, 0, 0.9), (5, 0.4, 1.0)])
def test_samples_that_cannot_be(tasks, precision, confidence):
    with pytest.raises(BudgetError):
        sample_size(tasks, precision, confidence)


@given(st.integers(1, 200), st.integers(1, 60), st.integers(0, 5))
def test_seven_tasks_run_everywhere_and_the_rest_once(tasks, size, seed):
    found = compact_samples(tasks, SITES, size, seed)
    spread = [task for site in SITES for task in found.spread[site]]
    drawn = [*found.everywhere, *spread]
    assert len(drawn) == len(set(drawn)) == min(size, tasks)
    assert set(drawn) <= set(range(tasks))
    assert len(found.everywhere) == min(7, size, tasks)
    sizes = [len(found.spread[site]) for site in SITES]
    assert max(sizes) - min(sizes) <= 1
    assert found == compact_samples(tasks, SITES, size, seed)


def test_no_site_to_sample_on():
    with pytest.raises(BudgetError, match="no site"):
        compact_samples(10, (), 5, 1)


@given(st.floats(0.1, 5), st.floats(0, 50))
def test_a_line_is_found_again(slope, offset):
    known = [10.0, 20.0, 50.0, 90.0]
    line = regression(known, [slope * each + offset for each in known])
    assert line(70.0) == pytest.approx(slope * 70 + offset)


def test_points_that_tell_no_line_give_the_ratio():
    assert regression([10.0, 10.0], [4.0, 6.0])(20.0) == pytest.approx(10)
    assert regression([10.0, 20.0], [9.0, 3.0])(30.0) == pytest.approx(12)
    with pytest.raises(BudgetError, match="tasks that ran on both"):
        regression([], [])


def test_samples_of_all_sites_teach_each():
    bag = np.random.default_rng(2).normal(600.0, 120.0, 1000)
    speed = {"slow": 1.0, "middle": 1.5, "fast": 3.0}
    drawn = compact_samples(1000, SITES, 300, 3)
    seen = {
        site: {task: bag[task] / speed[site] + 5 for task in (*drawn.everywhere, *drawn.spread[site])}
        for site in SITES
    }
    sampled = [task for each in seen.values() for task in each]
    for site, found in learn(seen).items():
        real = bag[sorted(set(sampled))] / speed[site] + 5
        assert found.mean == pytest.approx(real.mean(), rel=1e-6)
        assert found.deviation == pytest.approx(real.std(ddof=1), rel=1e-6)


def test_sites_that_cannot_be_compared():
    with pytest.raises(BudgetError, match="both one and other"):
        learn({"one": {1: 5.0}, "other": {2: 5.0}})
    with pytest.raises(BudgetError, match="no task has finished on alone"):
        learn({"alone": {}})
