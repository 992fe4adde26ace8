"""Single values as Slurm's commands print them."""

from __future__ import annotations

import math
import re
import time

_ISO = "%Y-%m-%dT%H:%M:%S"
_NO_TIME = frozenset({"", "N/A", "NONE", "None", "Unknown", "(null)", "0"})
_NO_LIMIT = frozenset(
    {"", "UNLIMITED", "INFINITE", "INVALID", "NOT_SET", "Partition_Limit", "N/A", "NONE", "n/a"}
)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)")


def parse_time(text: str) -> float | None:
    """Epoch seconds from `SLURM_TIME_FORMAT=%s` or from local ISO time; None where there is none.

    Raises:
        ValueError: it is neither.
    """
    if text in _NO_TIME:
        return None
    if text.isdigit():
        return float(text)
    return time.mktime(time.strptime(text, _ISO))


def parse_limit(text: str) -> float:
    """Seconds from `M:SS`, `H:MM:SS`, `D-HH:MM:SS` or `D-HH`; `math.inf` where there is no limit.

    Raises:
        ValueError: it is none of these.
    """
    if text in _NO_LIMIT:
        return math.inf
    days, _, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if len(parts) > 3 or (days and not days.isdigit()):
        raise ValueError(f"{text!r} is not a time limit")
    if days:  # counted from the hours on
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    else:  # counted from the seconds back
        hours, minutes, seconds = (0, 0, *parts)[-3:] if len(parts) > 1 else (0, parts[0], 0)
    return float(int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds)


def parse_count(text: str) -> int:
    """A count such as `12`, `1K` (1024) or, of the nodes of a waiting job, `1-4` (then the first).

    Raises:
        ValueError: it is not a count.
    """
    match = _COUNT.fullmatch(text.split("-")[0])
    if match is None:
        raise ValueError(f"{text!r} is not a count")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " "))
