"""Durations, instants, sizes and rates as people write them, to seconds and bytes, and back.

What a number alone means is decided here, for options, bag files, the configuration and Python alike: seconds
for a duration, a number in an hour for a rate. For a size or an instant it has no unit, and is refused. Batch
scripts keep the units of their schedulers (`bagfile/scripts/values.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNIT_NAMES = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "hour": "h", "hours": "h", "hr": "h", "hrs": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d)(?::([0-5]\d))?")
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt](?:i?b)?|b|)", re.ASCII | re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


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
    """Number in an hour, from a plain number, `60/h`, `2/m` (120) or `1000/d` (41).

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
    """Rate in words: `60/h`."""
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


def parse_instant(text: str, now: float) -> float:
    """Epoch seconds of `12h` (from now), `22:00` (the next by the local clock), `tomorrow` or a date.

    Raises:
        ValueError: the text is none of these, or a number without a unit.
    """
    written = text.strip()
    shown = shortened(text)
    if written == "tomorrow":
        return now + 86_400.0
    if _NUMBER.fullmatch(written):
        number = written if len(written) <= 20 else "N"
        raise ValueError(f"{shown} is a time without a unit: write {number}h (from now) or 22:00 (the next)")
    if clock := _TIME_OF_DAY.fullmatch(written):
        return _next(now, *(int(part or 0) for part in clock.groups()))
    try:
        if ":" not in written:  # with one it is a time of day
            return now + parse_duration(written)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(written).timestamp()
        datetime.fromtimestamp(at)  # raises an error for a time that cannot be shown
        return at
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{shown} is not a time: write 12h (from now), 22:00 (the next) or 2026-11-22T08:00"
        ) from None


def _next(now: float, hour: int, minute: int, second: int) -> float:
    """Epoch seconds of the next instant after `now` at which the local clock shows this."""
    today = datetime.fromtimestamp(now)
    at = today.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return (at if at.timestamp() > now else at + timedelta(days=1)).timestamp()


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


def parse_size(text: str | float) -> int:
    """Bytes from `512M`, `4G`, `1.5 GiB` or `100B` (binary multiples).

    Raises:
        ValueError: the text is not a size, it has no unit, or it is beyond 2^60.
    """
    plain = isinstance(text, (int, float)) and not isinstance(text, bool)
    written = shortened(text) if plain else text
    match = _SIZE.fullmatch(written.strip()) if isinstance(written, str) else None
    if match is None:
        raise ValueError(f"{shortened(text)} is not a size; write '512M' or '4G'")
    if not match["unit"]:
        if float(match["number"]) == 0:
            return 0
        number = match["number"] if len(match["number"]) <= 20 else "N"
        raise ValueError(
            f"{shortened(text)} is a size without a unit: write {number}M (megabytes) or {number}B (bytes)"
        )
    factor = 1024 ** "bkmgt".index(match["unit"][0].lower())
    size = int(min(float(match["number"]) * factor, 2.0 * LARGEST))
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
    """Number with its noun: `1 task`, `3 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def verb(number: int, plural: str) -> str:
    """The verb of a number of things: `1` and `wait` give `waits`, as `are` gives `is`."""
    return plural if number != 1 else "is" if plural == "are" else f"{plural}s"


def round_up(seconds: float, resolution: int) -> int:
    """The next multiple of the scheduler's time resolution (Slurm counts whole minutes)."""
    return math.ceil(seconds / resolution) * resolution


def round_down(seconds: float, resolution: int) -> int:
    return math.floor(seconds / resolution) * resolution


def format_clock(at: float) -> str:
    """The local time of an instant (epoch seconds): `14:05:09`."""
    return f"{datetime.fromtimestamp(at):%H:%M:%S}"


def utc_offset(at: float) -> int:
    """Seconds by which the local clock is ahead of UTC at an instant (epoch seconds)."""
    offset = datetime.fromtimestamp(at).astimezone().utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def format_offset(seconds: int) -> str:
    """Offset of a time zone: `UTC+01:00`."""
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"UTC{'-' if seconds < 0 else '+'}{hours:02d}:{minutes:02d}"


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
