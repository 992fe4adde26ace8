"""Verdicts of rows, and of all rows together."""

from __future__ import annotations

import math

import pytest

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.claims import Bounds, example, settled, tally

SURE, SHAKY, ALONE = Interval(1.2, 1.1, 1.3), Interval(1.2, 0.9, 1.5), Interval(1.2, 0.0, math.inf)


def test_a_row_is_open_where_its_interval_reaches_to_the_other_side() -> None:
    def judged(*bounds: float) -> list[str]:
        return [Bounds(*bounds).judge(found) for found in (SURE, SHAKY, ALONE)]

    assert judged(1.0) == judged(1.0, 1.4) == ["confirms", "open", "open"]
    assert judged(-math.inf, 1.0) == judged(2.0, 3.0)[:1] + ["open"] * 2 == ["contradicts", "open", "open"]
    assert (judged(1.25)[0], judged(1.4)[0], judged(1.0, 1.25)[0]) == ("open", "contradicts", "open")
    exactly = Interval.exactly(1.0)
    assert (Bounds(low=1.0).judge(exactly), Bounds(high=1.0).judge(exactly)) == ("confirms", "contradicts")


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
