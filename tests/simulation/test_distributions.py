"""Task runtimes as a user writes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.distributions import draw_runtimes
from adaptor_simulation.files import ReplayError


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("10m", 600), (" 01:00:00 ", 3600), ("0", 1)])
def test_a_duration_is_the_runtime_of_every_task(text, seconds):
    assert draw_runtimes(text, 3, 1).tolist() == [seconds] * 3


@pytest.mark.parametrize(
    ("text", "measure", "expected"),
    [
        ("uniform(5m, 15m)", np.mean, 600),
        ("normal(1h, 5m)", np.std, 300),
        ("lognormal(10m, 0.8)", np.median, 600),
        ("lognormal(10m, 0.8)", lambda drawn: np.std(np.log(drawn)) * 1000, 800),
        (" exponential ( 1000 ) ", np.mean, 1000),
    ],
)
def test_what_is_drawn_is_what_was_asked_for(text, measure, expected):
    assert measure(draw_runtimes(text, 100_000, 1)) == pytest.approx(expected, rel=0.02)


@given(st.sampled_from(["normal(1, 5)", "uniform(0, 3)", "exponential(0.1)", "lognormal(1, 30)"]))
def test_every_task_takes_a_second_at_least_and_ends(text):
    drawn = draw_runtimes(text, 200, 7)
    assert drawn.min() >= 1
    assert drawn.max() <= 10**12
    assert drawn.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("soon", "not a duration"),
        ("", "not a duration"),
        ("poisson(3)", "there are uniform"),
        ("uniform(1)", "takes shortest, longest"),
        ("lognormal(1, 2, 3)", "takes median, sigma"),
        ("exponential()", "not a duration"),
        ("uniform(5, 1)", "longer than the longest"),
        ("normal(5, -1)", "not a duration"),
    ],
)
def test_what_is_no_distribution(text, says):
    with pytest.raises(ReplayError, match=says):
        draw_runtimes(text, 3, 1)
