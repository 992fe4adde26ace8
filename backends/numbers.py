"""Parsers of printed numbers and times (none NaN, none so large that arithmetic fails), and of lines."""

from __future__ import annotations

import calendar
import functools
import math
import re
import time
from collections.abc import Callable
from typing import TypeVar

from backends.base import SchedulerError

Row = TypeVar("Row")

LARGEST = 10**15  # beyond it nothing is a count, a size in bytes, or a time; and a float is no longer exact
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


def whole(text: str) -> int:
    """Read an integer. Raises ValueError: it is none, or larger than anything that a scheduler counts."""
    if len(text) < 16 and text.isascii() and text.isdigit():  # the usual case
        return int(text)
    if not _WHOLE.fullmatch(text) or abs(number := int(text)) > LARGEST:
        raise ValueError(f"{text[:40]!r} is no whole number of a sensible size")
    return number


def finite(text: str) -> float:
    """Read a number. Raises ValueError: it is none, not finite, or larger than anything that a scheduler
    counts."""
    number = float(text)
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise ValueError(f"{text[:40]!r} is no number of a sensible size")
    return number


@functools.lru_cache(maxsize=4000)
def clock_seconds(text: str) -> float:
    """Seconds from `90`, `1:30` or `100:00:00`; hours may go beyond 24. Raises ValueError: it is neither."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + finite(part)
    if not seconds <= LARGEST:
        raise ValueError(f"{text[:40]!r} is no time of a sensible size")
    return seconds


_CTIME = re.compile(
    r"([A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9]) ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])( [0-9]{4})"
)


def utc_time(text: str) -> float:
    """Epoch seconds from `2026-11-25T21:45:38` or ctime(3), both in UTC. Raises ValueError: it is neither."""
    if match := _CTIME.fullmatch(text):
        day, hours, minutes, seconds, year = match.groups()
        return _day(day + year) + 3600 * int(hours) + 60 * int(minutes) + int(seconds)
    form = "%Y-%m-%dT%H:%M:%S" if text[:1].isdigit() else "%a %b %d %H:%M:%S %Y"
    return float(calendar.timegm(time.strptime(text, form)))


@functools.lru_cache(maxsize=100)
def _day(text: str) -> float:
    return float(calendar.timegm(time.strptime(text, "%a %b %d %Y")))


def understood(what: str, make: Callable[..., Row], *printed: str) -> Row:
    """The row that `make` makes of a line, or of its fields. Raises SchedulerError on a Value- or
    KeyError."""
    try:
        return make(*printed)
    except (ValueError, KeyError) as error:
        raise not_understood(what, " ".join(printed).strip()) from error


def not_understood(what: str, line: str) -> SchedulerError:
    return SchedulerError(f"{what} printed a line that the adaptor cannot read: {line[:200]!r}")
