"""The picture of a quote."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from adaptor.budget.provisioning.menu import menu
from adaptor.budget.provisioning.site_offers import Configuration, Line, Range, SiteOffer
from adaptor.cli.bags.quote import draw_menu
from adaptor.errors import AdaptorError
from adaptor.runtimes.task_time import TaskTime

LINES = menu(
    100,
    [
        SiteOffer(name="near", price=1.0, processors=8, task=TaskTime(100.0, 10.0)),
        SiteOffer(name="far", price=3.0, processors=8, task=TaskTime(60.0, 30.0), charging_unit=3600.0),
    ],
    30,
)


def test_it_is_a_png_with_something_drawn(tmp_path: Path) -> None:
    path = tmp_path / "menu.png"
    draw_menu(LINES, str(path))
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (960, 600)
    draw_menu(LINES[:1], str(path))
    assert path.read_bytes() != data


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "menu.png"
    with pytest.raises(AdaptorError, match=f"{path}: cannot be written"):
        draw_menu(LINES, str(path))


def test_ranges_may_leave_out_what_is_expected(tmp_path: Path) -> None:
    """As rounding may do; and it is a PNG whatever its name."""
    line = Line(
        name="cheapest",
        budget=9.0,
        configuration=Configuration(processors={"hpc": 2}, seconds=600.0, cost=8.0),
        seconds=Range(700.0, 900.0),
        cost=Range(7.0, 7.5),
    )
    draw_menu([line, line], str(tmp_path / "choices"))
    assert (tmp_path / "choices").read_bytes().startswith(b"\x89PNG")
