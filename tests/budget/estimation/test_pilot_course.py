"""How long tasks still run that are found running."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.pilot_course import Residuals


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=40), st.integers(1, 500), st.integers(0, 2**32))
def test_no_task_runs_longer_than_the_longest(runtimes: list[float], tasks: int, seed: int) -> None:
    left = Residuals(runtimes).longest(tasks, random.Random(seed))
    assert 0 <= left <= max(runtimes) * (1 + 1e-9)


def test_of_equal_tasks_half_is_left_in_the_mean_and_nearly_all_of_the_last() -> None:
    residuals, draw = Residuals([100.0] * 7), random.Random(1)
    assert residuals.mean == 50.0
    one = sum(residuals.longest(1, draw) for _ in range(2000)) / 2000
    assert one == pytest.approx(50.0, rel=0.05)
    most = sum(residuals.longest(9, draw) for _ in range(2000)) / 2000
    assert most == pytest.approx(90.0, rel=0.02)


def test_long_tasks_are_found_running_more_often() -> None:
    residuals, draw = Residuals([10.0] * 9 + [910.0]), random.Random(1)
    assert residuals.mean == pytest.approx((9 * 100 + 910**2) / 2 / 1000)
    mean = sum(residuals.longest(1, draw) for _ in range(4000)) / 4000
    assert mean == pytest.approx(residuals.mean, rel=0.05)
