"""Numbers and states in words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.cli.json_output import iso_time
from adaptor.cli.progress import Pace, rate_text
from adaptor.cli.table import layout
from adaptor.cli.words import clock, coloured, ending, pilots_line, plural, printable
from tests.cli.fake_control import pilot_view


@pytest.mark.parametrize(
    ("exit_code", "signal", "error", "words"),
    [
        (0, None, None, "exit 0"),
        (3, None, None, "exit 3"),
        (124, None, None, "timed out (exit 124)"),
        (126, None, None, "not executable (exit 126)"),
        (127, None, None, "command not found (exit 127)"),
        (137, None, None, "killed (SIGKILL, often out of memory)"),
        (None, 9, None, "killed (SIGKILL, often out of memory)"),
        (143, None, None, "terminated (SIGTERM)"),
        (None, 11, None, "segmentation fault (SIGSEGV)"),
        (None, 10, None, "ended by SIGUSR1"),
        (None, 250, None, "ended by signal 250"),
        (255, None, None, "exit 255"),
        (None, None, "no such folder", "no such folder"),
        (None, None, None, "-"),
    ],
)
def test_how_a_task_ended(exit_code: int | None, signal: int | None, error: str | None, words: str) -> None:
    assert ending(exit_code, signal, error) == words


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
        "3 pilots: 1 running (6 processors), 2 queued, start predicted "
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


def test_the_rate_is_that_of_the_last_half_minute() -> None:
    pace = Pace()
    assert pace.rate == 0
    for second in range(100):
        pace.add(float(second), 0 if second < 50 else 2 * (second - 50))
    assert pace.rate == pytest.approx(2.0, rel=0.05)


@given(st.floats(0, 1e6))
def test_rates_read_well(rate: float) -> None:
    text = rate_text(rate)
    assert text == "" or float(text.split()[0].replace(",", "")) >= 1


def test_rates() -> None:
    assert [rate_text(rate) for rate in (0, 120.0, 1.5, 0.05, 1 / 1800)] == [
        "",
        "120 tasks/s",
        "1.5 tasks/s",
        "3.0 tasks/min",
        "2.0 tasks/h",
    ]
