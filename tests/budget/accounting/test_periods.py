"""Calendar periods in a named time zone."""

from __future__ import annotations

from datetime import datetime, timedelta
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
def test_each_period_has_a_name_until_its_end(span, label, ends):
    calendar = Calendar(span)
    assert calendar.label(at("2026-11-21T10:40")) == label
    assert calendar.label(at(ends) - 0.5) == label
    assert calendar.label(at(ends)) != label


def test_the_zone_says_when_a_month_begins():
    instant = at("2026-02-01T01:00", "Asia/Tokyo")
    assert Calendar("month", "Asia/Tokyo").label(instant) == "2026-02"
    assert Calendar("month", "America/New_York").label(instant) == "2026-01"


def test_a_day_may_have_25_hours():
    calendar, begin = Calendar("day", "Europe/Lisbon"), at("2026-10-25T00:00", "Europe/Lisbon")
    assert {calendar.label(begin + hour * 3600) for hour in range(25)} == {"2026-10-25"}
    assert calendar.label(begin + 25 * 3600) == "2026-10-26"


@given(
    st.floats(0, 4e9),
    st.sampled_from(SPANS),
    st.sampled_from(["UTC", "Europe/Lisbon", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"]),
)
def test_a_period_begins_at_a_midnight_and_lasts(instant, span, zone):
    calendar = Calendar(span, zone)
    day = datetime.fromtimestamp(instant, ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [calendar.label((day + timedelta(days=more)).timestamp()) for more in range(400)]
    names = list(dict.fromkeys(days))
    assert calendar.label(instant) == days[0]
    assert days == [name for name in names for _ in range(days.count(name))], "none comes again"
    most = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[span]
    assert max(map(days.count, names)) <= most


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd"])
def test_a_zone_that_does_not_exist(zone):
    with pytest.raises(BudgetError, match="write a name such as Europe/Lisbon"):
        Calendar("month", zone)
