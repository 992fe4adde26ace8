"""Durations, sizes and counts as people write them, to seconds and bytes, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import datetime

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNIT_NAMES = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "hour": "h", "hours": "h", "hr": "h", "hrs": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d)(?::([0-5]\d))?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


LONGEST = 100 * 365.25 * 86400.0
"""Seconds of the longest duration that makes sense; a longer one is a typing error."""
SHORTEST_TIME = 0.001  # seconds that a task is expected to take, at least
LARGEST = 2**60  # bytes of the largest size that makes sense


class Duration(float):
    """Seconds; in YAML also `1h 30m` or `HH:MM:SS`."""


class HourlyRate(int):
    """A number per hour; in YAML also `60/h`, `2/m` or `1000/d`."""


MOST_HOURLY = 1_000_000  # of anything in an hour: beyond it is a typing error
_RATE = re.compile(r"(\d{1,9})\s*(?:/|per)\s*([a-z]+)")


def parse_hourly(text: str | int) -> int:
    """How many in an hour: of a plain number, `60/h`, `2/m` (120) or `1000/d` (41).

    Raises:
        ValueError: the text is none of these, or that is not from 1 to 1,000,000 in an hour.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        found = text
    else:
        match = _RATE.fullmatch(text.strip().lower()) if isinstance(text, str) else None
        unit = match and _UNIT_NAMES.get(match[2], match[2])
        if match is None or unit not in ("m", "h", "d"):
            raise ValueError(f"{shortened(text)} is not a rate; write a number in an hour, such as 60/h")
        found = int(match[1]) * 3600 // _UNIT_SECONDS[unit]
    if not 1 <= found <= MOST_HOURLY:
        raise ValueError(f"{shortened(text)} is not from 1 to 1000000 in an hour")
    return found


def format_hourly(rate: int) -> str:
    """`60/h`."""
    return f"{rate}/h"


def parse_duration(text: str | int | float) -> float:
    """Seconds from plain seconds, `1h 30m`, `HH:MM:SS`, `MM:SS`, `D-HH:MM` or `D-HH:MM:SS`.

    Raises:
        ValueError: the text is none of these, negative, or longer than 100 years.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise _no_duration(text)
    try:
        seconds = _text_seconds(text) if isinstance(text, str) else float(text)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{shortened(text)} is not a duration: it must be finite and not negative")
    if seconds > LONGEST:
        raise ValueError(f"{shortened(text)} is not a duration: it is longer than 100 years")
    return seconds


def _no_duration(text: object) -> ValueError:
    return ValueError(f"{shortened(text)} is not a duration; write seconds, '1h 30m' or 'HH:MM:SS'")


def shortened(value: object) -> str:
    """A value as it was written, for a message of one line."""
    try:
        shown = repr(value)
    except ValueError:  # more digits than Python writes
        shown = "a number of thousands of digits"
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _text_seconds(text: str) -> float:
    cleaned = text.strip().lower()
    if not cleaned:
        raise ValueError("an empty text is not a duration; write seconds, '1h 30m' or 'HH:MM:SS'")
    if re.fullmatch(r"\d+(\.\d+)?", cleaned):
        return float(cleaned)
    clock = _CLOCK.fullmatch(cleaned)
    if clock:
        days, first, second, third = clock.groups()
        if third is None and days is None:  # MM:SS
            return int(first) * 60.0 + int(second)
        hours, minutes, seconds = int(first), int(second), int(third or 0)
        return int(days or 0) * 86400.0 + hours * 3600 + minutes * 60 + seconds
    total, rest = 0.0, cleaned
    while rest:
        part = _HUMAN.match(rest)
        unit = part and _UNIT_NAMES.get(part[2], part[2])
        if part is None or unit not in _UNIT_SECONDS:
            raise _no_duration(text)
        total += float(part[1]) * _UNIT_SECONDS[unit]
        rest = rest[part.end() :].lstrip()
    return total


def format_duration(seconds: float) -> str:
    """A short text for people: `6ms`, `8.2s`, `4m 10s`, `1h 30m`, `2d 3h`, `unlimited`."""
    if math.isinf(seconds):
        return "unlimited"
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if 0 < seconds < 0.0995:
        return f"{max(1, round(1000 * seconds))}ms"
    if seconds < 9.95 and seconds != int(seconds):
        return f"{seconds:.1f}s"
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    parts = [f"{n}{unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (secs, "s")) if n]
    return " ".join(parts[:2]) or "0s"


def clock_duration(seconds: float) -> str:
    """`HH:MM:SS` (hours may exceed 24), rounded up to a whole second, as schedulers take it."""
    whole = math.ceil(seconds)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def parse_size(text: str | int) -> int:
    """Bytes from a plain number of bytes or `512M`, `4G`, `1.5 GiB` (binary multiples).

    Raises:
        ValueError: the text is not a size, or it is beyond 2^60.
    """
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        size = text
    else:
        match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"{shortened(text)} is not a size; write bytes, '512M' or '4G'")
        factor = 1024 ** " kmgt".index(match[2].lower() or " ")
        size = int(min(float(match[1]) * factor, 2.0 * LARGEST))
    if size > LARGEST:
        raise ValueError(f"{shortened(text)} is too large for a size")
    return size


def format_size(size: float) -> str:
    """A short text for people: `17M`, `1.5G`."""
    for unit in ("B", "K", "M", "G"):
        if round(size) < 1024 or unit == "G":
            break
        size /= 1024
    return f"{size:.0f}{unit}" if size >= 9.95 or size == int(size) else f"{size:.1f}{unit}"


def counted(number: int, noun: str) -> str:
    """`1 task`, `3 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def round_up(seconds: float, resolution: int) -> int:
    """The next multiple of the scheduler's time resolution (Slurm counts whole minutes)."""
    return math.ceil(seconds / resolution) * resolution


def round_down(seconds: float, resolution: int) -> int:
    return math.floor(seconds / resolution) * resolution


def format_clock(at: float) -> str:
    """The local time of an instant (epoch seconds): `14:05:09`."""
    return f"{datetime.fromtimestamp(at):%H:%M:%S}"


def format_instant(at: float) -> str:
    """The local date and time of an instant (epoch seconds): `2026-11-22 14:05:09`."""
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}"


def folded(numbers: Iterable[int]) -> str:
    """Numbers with ranges, in order: `1-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
