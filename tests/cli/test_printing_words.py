"""Numbers and states in words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.cli.printing import clock, coloured, iso_time, layout, pilots_line, plural, printable
from tests.cli.fake_control import pilot_view


def test_times_of_day() -> None:
    noon = time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1))
    assert clock(noon + 3723, noon) == "13:02:03"
    assert clock(noon - 86400, noon) == "11-20 12:00"
    assert clock(noon - 400 * 86400, noon) == "2025-10-17"
    assert clock(None) == "-"


def test_json_times_are_utc() -> None:
    assert iso_time(1_700_000_000.5) == "2023-11-14T22:13:20.500Z"


@given(st.text())
def test_nothing_printable_moves_the_cursor(text: str) -> None:
    shown = printable(text, 20)
    assert shown.isprintable()
    assert len(shown) <= 20


def test_colours_are_for_states_and_honour_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in coloured("failed", "failed")
    assert coloured("waiting", "waiting") == "waiting"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("failed", "failed") == "failed"


def test_the_pilots_in_a_line() -> None:
    now = time.time()
    pilots = [
        pilot_view(1, state="running", p=6),
        pilot_view(2, state="queued", predicted_start=now + 60),
        pilot_view(3, state="submitting", predicted_start=None),
    ]
    assert pilots_line(pilots, now).startswith(
        "3 pilots: 1 running (6 processors), 2 queued, expected to start by "
    )
    assert pilots_line(pilots[:1], now) == "1 pilot: 1 running (6 processors)"
    assert pilots_line([], now) == "no pilots"


def test_plural() -> None:
    assert [plural(n, "task") for n in (0, 1, 12_000)] == ["0 tasks", "1 task", "12,000 tasks"]


cells = st.text(st.characters(categories=["L", "N"]), max_size=12)


@given(st.lists(st.tuples(cells, cells, cells)))
def test_a_table_lines_its_columns_up(rows: list[tuple[str, str, str]]) -> None:
    lines = list(layout(("bag", "name", "sites"), rows))
    assert len(lines) == len(rows) + 1
    starts = max([3, *(len(row[0]) for row in rows)])
    for line, (number, *_) in zip(lines[1:], rows, strict=True):
        assert line[:starts].strip() == number.strip()
        assert line[starts : starts + 2].strip() == ""
