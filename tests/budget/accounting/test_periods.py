"""Calendar periods in a named time zone."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.errors import BudgetError

SPANS = ("day", "week", "month", "quarter", "year")


def at(text, zone="UTC"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("span", "label", "ends"),
    [
        ("day", "2026-11-21", "2026-11-22"),
        ("week", "2026-W47", "2026-11-23"),
        ("month", "2026-11", "2026-12-01"),
        ("quarter", "2026-Q4", "2027-01-01"),
        ("year", "2026", "2027-01-01"),
    ],
)
def test_each_period_has_a_name_and_an_end(span, label, ends):
    calendar = Calendar(span)
    assert calendar.label(at("2026-11-21T10:40")) == label
    assert calendar.ends(at("2026-11-21T10:40")) == at(ends)


def test_the_zone_says_when_a_month_begins():
    instant = at("2026-02-01T01:00", "Asia/Tokyo")
    assert Calendar("month", "Asia/Tokyo").label(instant) == "2026-02"
    assert Calendar("month", "America/New_York").label(instant) == "2026-01"


def test_a_day_may_have_25_hours():
    calendar = Calendar("day", "Europe/Lisbon")
    noon = at("2026-10-25T12:00", "Europe/Lisbon")
    assert calendar.ends(noon) - at("2026-10-25T00:00", "Europe/Lisbon") == 25 * 3600


@given(
    st.floats(0, 4e9),
    st.sampled_from(SPANS),
    st.sampled_from(["UTC", "Europe/Lisbon", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"]),
)
def test_periods_follow_each_other_without_a_gap(instant, span, zone):
    calendar = Calendar(span, zone)
    end = calendar.ends(instant)
    assert end > instant
    assert calendar.label(end - 0.5) == calendar.label(instant)
    assert calendar.label(end + 0.5) != calendar.label(instant)


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd"])
def test_a_zone_that_does_not_exist(zone):
    with pytest.raises(BudgetError, match="write a name such as Europe/Lisbon"):
        Calendar("month", zone)
