"""`--json`: times are ISO 8601 and durations are floats, by the types of the fields."""

from __future__ import annotations

import click
import pytest

from adaptor import api
from adaptor.cli import printing
from adaptor.cli.printing import NumberCell, StateWord, layout, print_lines, readable
from adaptor.resources import OwnNeeds

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
