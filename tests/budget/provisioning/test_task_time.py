"""What runtimes of a mean and a deviation mean for processors that run one task after another."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.errors import UsageError
from tests.budget.provisioning.offer_strategies import task_times

IMPOSSIBLE = [(0, 1), (-5, 1), (math.inf, 0), (math.nan, 0), (5, -1), (5, math.inf)]


@pytest.mark.parametrize(("mean", "deviation"), IMPOSSIBLE)
def test_runtimes_that_cannot_be(mean, deviation):
    with pytest.raises(UsageError, match="must be"):
        TaskTime(mean, deviation)


def test_a_fresh_processor_completes_whole_tasks():
    task = TaskTime(100.0)
    assert task.completed(99.0, fresh=True) == pytest.approx(0)
    assert task.completed(350.0, fresh=True) == pytest.approx(3)
    assert task.started(350.0, fresh=True) == pytest.approx(4)


def test_completions_are_those_of_simulated_processors():
    draw = np.random.default_rng(1)
    ends = np.cumsum(draw.normal(100.0, 30.0, (4000, 20)), axis=1)
    for seconds in (80.0, 150.0, 430.0, 900.0):
        seen = (ends <= seconds).sum(axis=1).mean()
        assert TaskTime(100.0, 30.0).completed(seconds, fresh=True) == pytest.approx(seen, abs=0.05)


def test_completions_of_many_tasks_go_on_where_those_of_few_end():
    task = TaskTime(100.0, 80.0)
    few, many = (task.completed(seconds, fresh=True) for seconds in (3000.0, 3001.0))
    assert few == pytest.approx(many, abs=0.02)


def test_the_last_end_is_that_of_simulated_processors():
    draw = np.random.default_rng(2)
    ends = np.cumsum(draw.normal(100.0, 30.0, (300, 50, 30)), axis=2)
    left = np.where(ends > 1500.0, ends - 1500.0, np.inf).min(axis=2)
    assert TaskTime(100.0, 30.0).last_end(50, 0.5) == pytest.approx(np.median(left.max(axis=1)), rel=0.05)


@given(task_times(), st.floats(0, 10_000), st.floats(0, 10_000))
def test_more_time_never_does_less(task, one, other):
    low, high = sorted((one, other))
    for fresh in (True, False):
        assert task.completed(low, fresh) <= task.completed(high, fresh) + 0.51
        assert task.started(low, fresh) <= task.started(high, fresh) + 0.51
    assert task.ended(low) <= task.ended(high) + 1e-9


@given(task_times(), st.integers(1, 1000))
def test_more_processors_end_later(task, processors):
    assert task.last_end(processors, 0.5) <= task.last_end(2 * processors, 0.5) + 1e-3 * task.mean
    assert task.ending(processors) >= 0
