"""Hours of the day in which nodes may be used."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.fitting import DAY, closes
from adaptor.donation.situation import Hours

HOUR = 3600.0
NIGHT = (Hours(20 * HOUR, 7 * HOUR),)


@pytest.mark.parametrize(
    ("hour", "left"), [(21, 10), (0, 7), (6.5, 0.5), (7, 0), (12, 0), (19.99, 0), (20, 11)]
)
def test_a_night(hour, left):
    now = 5 * DAY + hour * HOUR
    assert closes(NIGHT, now, 0.0) - now == pytest.approx(left * HOUR)


def test_parts_that_touch_are_one():
    parts = (Hours(1 * HOUR, 2 * HOUR), Hours(2 * HOUR, 3 * HOUR))
    assert closes(parts, 1.5 * HOUR, 0.0) == 3 * HOUR


def test_no_hours_are_all_hours():
    assert closes((), 1.0, 0.0) == math.inf


@pytest.mark.parametrize(
    "parts", [(Hours(0, DAY),), (Hours(5, 5),), (Hours(0, DAY / 2), Hours(DAY / 2, DAY))]
)
def test_the_whole_day_never_closes(parts):
    assert closes(parts, 12345.0, 0.0) == math.inf


spans = st.builds(Hours, st.integers(0, 23).map(HOUR.__mul__), st.integers(0, 24).map(HOUR.__mul__))


@given(st.lists(spans, min_size=1, max_size=3), st.floats(0, 1e6), st.floats(-DAY, DAY))
def test_what_is_open_is_open_until_it_closes(parts, now, midnight):
    end = closes(parts, now, midnight)
    if now < end < math.inf:
        assert closes(parts, now + (end - now) / 2, midnight) == pytest.approx(end)
        assert closes(parts, end + 1e-3, midnight) == pytest.approx(end + 1e-3)
