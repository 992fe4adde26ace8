"""Figures with their intervals."""

from __future__ import annotations

import math

import pytest

from adaptor.forecast.estimate import estimate
from adaptor.model import Estimate


@pytest.mark.parametrize(
    ("figure", "held"),
    [
        (1.0, True),
        (2.0, True),
        (3.0, True),
        (1.0 - 1e-7, True),
        (3.0 + 1e-7, True),
        (0.99, False),
        (3.01, False),
    ],
)
def test_an_interval_holds_its_ends_and_what_lies_between(figure: float, held: bool) -> None:
    assert Estimate(1.0, 2.0, 3.0).holds(figure) is held


def test_an_interval_that_is_not_known_holds_nothing() -> None:
    assert not Estimate(math.nan, math.nan, math.nan).holds(1.0)


def test_nine_cases_in_ten_lie_within() -> None:
    cases = [float(each) for each in range(200)]
    found = estimate(cases)
    assert sum(found.holds(each) for each in cases) == pytest.approx(180, abs=2)
