"""Times, limits and counts as Slurm prints them."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.slurm.fields import parse_count, parse_limit, parse_time


@pytest.mark.parametrize("text", ["N/A", "NONE", "None", "Unknown", "(null)", ""])
def test_no_time(text: str) -> None:
    assert parse_time(text) is None


def test_epoch_and_local_time() -> None:
    assert parse_time("1795250485") == 1795250485
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(1795250485))
    assert parse_time(local) == 1795250485


@pytest.mark.parametrize("text", ["soon", "2026-11-21", "-5", "12:30"])
def test_bad_times(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30:00", 1800),
        ("0:30", 30),
        ("1:00:00", 3600),
        ("04:00:00", 14400),
        ("1-00:00:00", 86400),
        ("2-12", 2 * 86400 + 12 * 3600),
        ("2-12:30", 2 * 86400 + 12 * 3600 + 1800),
        ("90", 5400),
        ("UNLIMITED", math.inf),
        ("INVALID", math.inf),
        ("", math.inf),
    ],
)
def test_limits(text: str, seconds: float) -> None:
    assert parse_limit(text) == seconds


@pytest.mark.parametrize("text", ["forever", "1:2:3:4", "x-1", "1-", ":"])
def test_bad_limits(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_limit(text)


@given(st.integers(0, 400 * 86400))
def test_every_limit_is_read_back(seconds: int) -> None:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    assert parse_limit(f"{days}-{clock}") == seconds


@pytest.mark.parametrize(("text", "count"), [("12", 12), ("1K", 1024), ("1.5K", 1536), ("1-4", 1), ("0", 0)])
def test_counts(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "many", "4X", "-1"])
def test_bad_counts(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_count(text)
