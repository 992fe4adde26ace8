"""Jobs of a trace whose interarrival times are multiplied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.jobs import Jobs


def jobs(*submitted: int) -> Jobs:
    ones = np.ones(len(submitted), np.int64)
    submit = np.array(submitted, np.int64)
    return Jobs(number=ones, submit=submit, run=10 * ones, estimate=20 * ones, processors=2 * ones)


def test_the_load_rises_as_the_times_shrink() -> None:
    made = jobs(100, 200, 500)
    assert made.offered_load(4) == pytest.approx(60 / (4 * 400))
    assert made.stretched(0.5).submit.tolist() == [100, 150, 300]
    assert made.stretched(0.5).offered_load(4) == pytest.approx(2 * made.offered_load(4))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50).map(sorted), st.floats(0.01, 100))
def test_the_order_and_the_first_instant_stay(submitted: list[int], factor: float) -> None:
    made = jobs(*submitted).stretched(factor)
    assert made.submit[0] == submitted[0]
    assert (np.diff(made.submit) >= 0).all()
    assert jobs(*submitted).stretched(1.0).submit.tolist() == submitted
