"""Verdicts of rows, and of all rows together."""

from __future__ import annotations

import math

import pytest

from adaptor_experiments.bootstrap import (
    Interval,
    above,
    at_least,
    below,
    between,
    example,
    less,
    settled,
    tally,
)

SURE, SHAKY, ALONE = Interval(1.2, 1.1, 1.3), Interval(1.2, 0.9, 1.5), Interval(1.2, 0.0, math.inf)


def test_a_row_is_open_where_its_interval_reaches_to_the_other_side() -> None:
    assert [at_least(each, 1.0) for each in (SURE, SHAKY, ALONE)] == ["confirms", "open", "open"]
    assert [less(each, 1.0) for each in (SURE, SHAKY, ALONE)] == ["contradicts", "open", "open"]
    assert (at_least(SURE, 1.25), at_least(SURE, 1.4)) == ("open", "contradicts")
    assert [between(each, 1.0, 1.4) for each in (SURE, SHAKY, ALONE)] == ["confirms", "open", "open"]
    assert between(SURE, 2.0, 3.0) == "contradicts"
    assert (above(1.0, float_interval)(1.5), below(1.0, float_interval)(1.5)) == ("confirms", "contradicts")


def float_interval(value: float) -> Interval:
    return Interval(value, value, value)


@pytest.mark.parametrize(
    ("confirm", "contradict", "undecided", "of_most", "of_each"),
    [
        (3, 0, 0, "confirms", "confirms"), (3, 1, 1, "confirms", "contradicts"),
        (1, 3, 1, "contradicts", "contradicts"), (2, 1, 2, "open", "contradicts"),
        (2, 0, 1, "confirms", "open"), (0, 0, 2, "open", "open"),
    ],
)  # fmt: skip
def test_all_rows_together(confirm, contradict, undecided, of_most, of_each) -> None:
    found = {"confirms": [1] * confirm, "contradicts": [2] * contradict, "open": [3] * undecided}
    assert (settled(found, "most"), settled(found, "each")) == (of_most, of_each)


def test_the_example_is_of_the_rarest_verdict() -> None:
    found = tally([1, 2, 3], lambda row: "confirms" if row < 3 else "contradicts")
    assert found == {"confirms": [1, 2], "contradicts": [3], "open": []}
    assert example(found) == 3
    assert example(tally([], lambda _: "open")) is None
