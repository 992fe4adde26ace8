"""`--json`: times are ISO 8601 and durations are floats, by the types of the fields."""

from __future__ import annotations

import time

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.cli import printing
from adaptor.cli.printing import (
    NumberCell,
    StateWord,
    clock,
    coloured,
    iso_time,
    layout,
    pilots_line,
    plural,
    print_lines,
    printable,
    readable,
)
from adaptor.model import Estimate
from adaptor.resources import OwnNeeds
from tests.cli.fake_control import pilot_view, running_bag

AT = 1_700_000_000.5
ISO = "2023-11-14T22:13:20.500Z"


def test_times_of_every_view_are_iso_8601() -> None:
    removed = api.RemovedPilotView(pilot=1, site="a", reserved=0.0, submitted=AT, started=None, due=AT)
    journal = api.JournalView(size=0, bags=0, oldest=AT, keep=60.0, compacting=False)
    told = readable({"removed": [removed], "journal": journal})
    assert told["removed"][0]["due"] == told["removed"][0]["submitted"] == ISO
    assert told["removed"][0]["started"] is None
    assert (told["journal"]["oldest"], told["journal"]["keep"]) == (ISO, 60.0)


def test_a_duration_is_a_float_and_no_time_of_the_calendar() -> None:
    slot = api.SlotView(start=AT, end=None, processors=4, p=4, tr=3600)
    told = readable(slot)
    assert told["start"] == ISO
    assert isinstance(told["tr"], float)
    assert readable(OwnNeeds(time=600.0))["time"] == 600.0, "what a task takes"


TITLES = ["bag", "name", "state", "failed", "mean", "submitted", "sites"]
ROWS = [
    [NumberCell(1), "a-long-name-of-a-bag", StateWord("done"), NumberCell(0), "2s", "17:03:10", "any"],
    [NumberCell(12), "short", StateWord("running"), NumberCell(0), "3s", "17:05:00", "any"],
]


@pytest.mark.parametrize(
    ("width", "title"),
    [
        (80, "bag  name                  state    failed  mean  submitted  sites"),
        (60, "bag  name                  state    mean  submitted  …"),
        (50, "bag  name              state    mean  submitted  …"),
        (40, "bag  name               state    mean  …"),
        (10, "bag  state  …"),
    ],
)
def test_a_table_fits_the_terminal(width: int, title: str) -> None:
    """Columns that say nothing go first, then ends of texts, then the last columns; states stay."""
    lines = [click.unstyle(line) for line in layout(TITLES, ROWS, width)]
    assert lines[0] == title
    assert all(len(line) <= max(width, 15) for line in lines)
    assert lines[1].split()[0] == "1"
    assert "done" in lines[1]


def test_a_table_without_rows_has_its_titles() -> None:
    assert list(layout(TITLES, [])) == ["  ".join(TITLES)]


def test_long_lines_are_broken_between_words_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "17:07:10 here pilot 2: issued: 4 × 1h now: done about 17:11:53 (17:09:13 to 17:26:25)"
    print_lines([line])
    monkeypatch.setattr(printing, "terminal_width", lambda: 40)
    print_lines([line])
    whole, *parts = capsys.readouterr().out.splitlines()
    assert whole == line
    assert all(len(part) <= 40 for part in parts)
    assert [part[:2] for part in parts[1:]] == ["  "] * (len(parts) - 1)
    assert " ".join(part.strip() for part in parts) == line


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
        pilot_view(1, state="running", p=6, started=now),
        pilot_view(2, state="queued", expected=now + 60),
        pilot_view(3, state="submitting"),
    ]
    assert pilots_line(pilots, now).startswith(
        "3 pilots: 1 running (6 processors), 2 queued, expected to start by "
    )
    ends = now - 10 + 86_400
    first = pilot_view(1, state="running", p=6, bag=4, started=now - 10, tr=86_400)
    after = [pilot_view(2, state="queued", bag=bag, expected=ends - 5) for bag in (4, None)]
    told = "2 pilots: 1 running (6 processors), 1 queued"
    assert pilots_line([first, after[0]], now) == told, "its bag does not wait for it"
    assert pilots_line([first, after[1]], now) == f"{told}, expected to start by {clock(ends - 5, now)}"
    ahead = api.ForecastView(end=Estimate(now, now + 10, now + 59), cost=None, deadline=None)
    done, later = (
        running_bag(4, forecast=msgspec.structs.replace(ahead, end=Estimate(now, now, now + most)))
        for most in (59, 61)
    )
    assert pilots_line(pilots, now, [done]) == "3 pilots: 1 running (6 processors), 2 queued"
    for bags in ([done, later], [done, running_bag(5)], []):
        assert pilots_line(pilots, now, bags).endswith(f"expected to start by {clock(now + 60, now)}")
    assert pilots_line(pilots[:1], now) == "1 pilot: 1 running (6 processors)"
    assert pilots_line([], now) == "no pilots"


def test_pilots_that_wait_at_several_sites_are_for_the_same_tasks() -> None:
    one, two, paid = (
        [pilot_view(number, state="queued", site=site, bag=bag) for number in (1, 2)]
        for site, bag in (("one", None), ("two", None), ("two", 7))
    )
    assert pilots_line([*one, *paid]) == "4 pilots: 4 queued", "they are for other bags"
    assert pilots_line([*one, *two[:1]]) == (
        "3 pilots: 3 queued (2 at one, 1 at two: those that start first take the tasks)"
    )


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
