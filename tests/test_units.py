"""Durations and sizes: what people write is what we understand, and what we print they can read."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.units import (
    clock_duration,
    format_duration,
    format_instant,
    format_size,
    parse_duration,
    parse_instant,
    parse_size,
    round_down,
    round_up,
    verb,
)

whole_seconds = st.integers(0, 10**8)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90),
        (1.5, 1.5),
        ("90", 90),
        ("0.25", 0.25),
        (" 90 ", 90),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        ("1 h 30 min", 5400),
        ("1.5 hours", 5400),
        ("2 Days", 172800),
        ("1w", 604800),
        ("45 secs", 45),
        ("1:30", 90),
        ("01:30:00", 5400),
        ("100:00:00", 360000),
        ("2-01:30", 178200),
        ("2-01:30:05", 178205),
    ],
)
def test_durations_as_people_write_them(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "soon", "5x", "1h,", "1m 5", "10 20", "-5", "1:75", "1:60:00", "1:2:3", "h", "nan", "inf",
        "1e3", "9" * 400, -1, math.nan, math.inf, 10**400, True, None, [1], {},
    ],
)  # fmt: skip
def test_other_durations_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a duration") as caught:
        parse_duration(text)
    assert len(str(caught.value)) < 160


@given(whole_seconds)
def test_schedulers_and_we_understand_the_clock_alike(seconds: int) -> None:
    text = clock_duration(seconds)
    hours, minutes, rest = text.split(":")
    assert (len(minutes), len(rest)) == (2, 2)
    assert parse_duration(text) == seconds == int(hours) * 3600 + int(minutes) * 60 + int(rest)


@given(st.floats(0, 1e8))
def test_the_clock_never_promises_less(seconds: float) -> None:
    assert 0 <= parse_duration(clock_duration(seconds)) - seconds <= 1


@given(whole_seconds)
def test_a_duration_for_people_is_near_and_can_be_typed_back(seconds: int) -> None:
    """Two units are shown: what is left out is less than one of the second."""
    again = parse_duration(format_duration(seconds))
    left_out = seconds - again
    assert 0 <= left_out < 86400
    if seconds < 3600:
        assert left_out == 0
    elif seconds < 86400:
        assert left_out < 60


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (0.04, "40ms"), (0.00001, "1ms"), (0.0996, "0.1s"),
        (8.2, "8.2s"), (9.96, "10s"), (59.6, "1m"), (250, "4m 10s"),
        (5400, "1h 30m"), (3599.7, "1h"), (183600, "2d 3h"), (math.inf, "unlimited"), (-90, "-1m 30s"),
    ],
)  # fmt: skip
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (0, 0), ("0", 0), ("512B", 512), ("512M", 512 * 2**20), ("4g", 4 * 2**30), ("4GB", 4 * 2**30),
        ("1.5 GiB", 3 * 2**29), (" 1 T ", 2**40), ("100B", 100),
    ],
)  # fmt: skip
def test_sizes_as_people_write_them(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1", "4 X", "1e3", "9" * 400 + "T", -1, True, 1.5, None, [4]])
def test_other_sizes_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize("text", ["4000", 4000, " 4000 ", 4000.0])
def test_a_size_without_a_unit_is_refused_with_two_ways_to_write_it(text: Any) -> None:
    """For sbatch 4000 are megabytes, for others bytes."""
    number = str(text).strip()
    with pytest.raises(ValueError, match=rf"without a unit: write {number}M \(megabytes\) or {number}B \(b"):
        parse_size(text)


NOW = datetime(2026, 11, 22, 14, 30).timestamp()


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("12h", "2026-11-23 02:30:00"),
        ("90 min", "2026-11-22 16:00:00"),
        ("22:00", "2026-11-22 22:00:00"),
        ("08:15:30", "2026-11-23 08:15:30"),
        ("14:30", "2026-11-23 14:30:00"),
        ("0:00", "2026-11-23 00:00:00"),
        ("tomorrow", "2026-11-23 14:30:00"),
        ("2026-12-01", "2026-12-01 00:00:00"),
        ("2026-12-01T08:00", "2026-12-01 08:00:00"),
        ("2026-12-01 08:00", "2026-12-01 08:00:00"),
    ],
)
def test_instants_as_people_write_them(text: str, clock: str) -> None:
    assert format_instant(parse_instant(text, NOW)) == clock


@pytest.mark.parametrize("text", ["", "soon", "24:00", "36:00", "1:2", "1-08:00", "2026-13-01", "1e300"])
def test_other_instants_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: write 12h"):
        parse_instant(text, NOW)


@pytest.mark.parametrize("text", ["8", "22", "2026", "20261201", "1.5", "9" * 500])
def test_an_instant_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is a time without a unit: write .*h \(from now\) or 22:00"):
        parse_instant(text, NOW)


@given(st.integers(0, 2**50))
def test_a_size_for_people_is_near_and_can_be_typed_back(size: int) -> None:
    text = format_size(size)
    assert abs(parse_size(text) - size) <= 0.06 * size
    assert "1024" not in text or size >= 2**40


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1K"), (1536, "1.5K"), (17 * 2**20, "17M"), (2**20 - 1, "1.0M")],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.floats(0, 1e8, allow_subnormal=False), st.sampled_from([1, 7, 60, 3600]))
def test_rounding_meets_the_resolution_and_stays_near(seconds: float, resolution: int) -> None:
    up, down = round_up(seconds, resolution), round_down(seconds, resolution)
    assert up % resolution == down % resolution == 0
    assert down <= seconds <= up
    assert up - down in (0, resolution)


@pytest.mark.parametrize(
    ("number", "plural", "told"),
    [(0, "wait", "wait"), (1, "wait", "waits"), (2, "wait", "wait"), (1, "are", "is"), (3, "are", "are")],
)
def test_a_verb_agrees_with_the_number_of_its_subject(number: int, plural: str, told: str) -> None:
    assert verb(number, plural) == told
