"""Single values as Grid Engine prints them. Each function raises ValueError where the text is none."""

from __future__ import annotations

import calendar
import math
import re
import time

from backends.numbers import finite, whole

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKmMgGtT]?)")
_UNITS = {"": 1, **{unit: 1000**n for n, unit in enumerate("kmgt", 1)}}
_UNITS |= {unit: 1024**n for n, unit in enumerate("KMGT", 1)}


def seconds_of(text: str) -> float:
    """Seconds from `600`, `0:10:0` or `INFINITY`; of `INFINITY,[n1=0:30:0]` what holds on most hosts."""
    text = text.partition(",[")[0].strip()
    if text.upper() in ("INFINITY", "NONE", ""):
        return math.inf
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + (finite(part) if part else 0.0)
    return finite(str(seconds))


def bytes_of(text: str) -> int:
    """Bytes from `512M` (1024 × 1024), `512m` (1000 × 1000), `1.500G` or a plain number."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a size")
    return whole(str(int(finite(match[1]) * _UNITS[match[2]])))


def time_of(text: str) -> float:
    """Epoch seconds from `2026-11-25T21:45:38` or ctime(3), both in UTC; 0 from `-/-`."""
    if text.startswith("-/-"):
        return 0.0
    form = "%Y-%m-%dT%H:%M:%S" if text[:1].isdigit() else "%a %b %d %H:%M:%S %Y"
    return float(calendar.timegm(time.strptime(text.partition(".")[0].strip(), form)))


def count_of(text: str) -> int:
    """A whole number from `4`, `4.000000` or `2-4`, of which it is the least."""
    return whole(str(int(finite(text.partition("-")[0] or "0"))))
