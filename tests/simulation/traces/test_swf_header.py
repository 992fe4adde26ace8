"""Labels of a trace's header."""

from __future__ import annotations

import pytest

from adaptor_simulation.traces.swf import Header, header_lines, parse_header


def test_continuations_may_hold_colons():
    header = parse_header(
        [
            "; Information: http://one/",
            ";              http://two/",
            ";",
            "; Note: first",
            ";\tscrub: second",
            ";Note: third",
            ";   MaxProcs: 128",
        ]
    )
    assert header.entries == (
        ("Information", "http://one/\nhttp://two/"),
        ("Note", "first\nscrub: second"),
        ("Note", "third"),
        ("MaxProcs", "128"),
    )
    assert header.notes == ["first\nscrub: second", "third"]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *(("338 (batch partition; 512 total)", 338), ("-1", None), ("many", None), ("", None), ("0", 0)),
        *(("1,024", 1024), ("12,345,678 in all", 12345678), ("64, all in one rack", 64), ("0064", 64)),
        *(("1,02", None), ("10,24", None), ("128K", None), ("1.5", None), ("1,0245", None)),
    ],
)
def test_numbers(value, number):
    assert Header((("MaxNodes", value),)).number("MaxNodes") == number


def test_a_missing_label():
    assert Header().text("Computer") is None
    assert Header().number("MaxProcs") is None


def test_what_was_parsed_is_written_so_that_it_parses_again():
    header = parse_header(
        ["; Version: 2.2", "; Note: one", ";   two: three", "; Queue: 1 day", "; Queue: 2 night"]
    )
    assert parse_header(header_lines(header)) == header


def test_text_before_the_first_label_is_dropped():
    assert parse_header([";   made by hand", "; Version: 2"]).entries == (("Version", "2"),)
