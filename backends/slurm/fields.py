"""Single values as Slurm's commands print them."""

from __future__ import annotations

import functools
import itertools
import math
import re
import time
from collections.abc import Iterable

from backends.numbers import finite, whole

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
        return float(whole(text))
    try:
        return time.mktime(time.strptime(text, _ISO))
    except OverflowError as error:
        raise ValueError(f"{text[:40]!r} is beyond this machine's times") from error


@functools.lru_cache(maxsize=4000)
def parse_limit(text: str) -> float:
    """Seconds from `M:SS`, `H:MM:SS`, `D-HH:MM:SS` or `D-HH`; `math.inf` where there is no limit.

    Raises:
        ValueError: it is none of these.
    """
    if text in _NO_LIMIT:
        return math.inf
    days, _, clock = text.rpartition("-")
    parts = [whole(part) for part in clock.split(":")]
    if len(parts) > 3 or (days and not days.isdigit()):
        raise ValueError(f"{text[:40]!r} is not a time limit")
    if days:  # counted from the hours on
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    else:  # counted from the seconds back
        hours, minutes, seconds = (0, 0, *parts)[-3:] if len(parts) > 1 else (0, parts[0], 0)
    return float(whole(days or "0") * 86400 + hours * 3600 + minutes * 60 + seconds)


@functools.lru_cache(maxsize=4000)
def parse_count(text: str) -> int:
    """A count such as `12`, `1K` (1024) or, of the nodes of a waiting job, `1-4` (then the first).

    Raises:
        ValueError: it is not a count.
    """
    match = _COUNT.fullmatch(text.split("-")[0])
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a count")
    return int(finite(match[1]) * 1024 ** " KMGT".index(match[2] or " "))


MOST_NAMES = 200_000
_ONE_BRACKET = re.compile(r"([^\[\],]+)\[([^\[\]]*)\]")  # the form of most lists
_PIECE = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expand(text: str) -> list[str]:
    """The names one by one; several brackets in one name are counted through, the last one fastest.

    Raises:
        ValueError: the text is not a list of hosts, or names more of them than any cluster has.
    """
    if not text or text in ("(null)", "None assigned"):
        return []
    if "[" not in text and "," not in text and "]" not in text:
        return [text]
    if (one := _ONE_BRACKET.fullmatch(text)) is not None:
        return [one[1] + number for number in _numbers(one[2])]
    names: list[str] = []
    for part in _split(text):
        names += _expand_one(part, MOST_NAMES - len(names))
    return names


def _split(text: str) -> list[str]:
    """The parts between those commas that stand outside brackets."""
    parts = re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text)
    if ",".join(parts) != text:
        raise ValueError(f"{text[:40]!r} is not a list of hosts")
    return parts


def _expand_one(part: str, most: int) -> list[str]:
    pieces: list[list[str]] = []
    count = 1
    for prefix, ranges, plain in _PIECE.findall(part):
        pieces.append([plain] if plain else [prefix + number for number in _numbers(ranges)])
        count *= len(pieces[-1])
        if count > most:
            raise ValueError(f"{part[:40]!r} names more than {MOST_NAMES:,} hosts")
    return ["".join(combination) for combination in itertools.product(*pieces)]


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        if len(item) < 16 and item.isascii() and item.isdigit() and len(numbers) < MOST_NAMES:
            numbers.append(item)
            continue
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ValueError(f"{ranges[:40]!r} is not a list of numbers and ranges")
        first, last = match[1], match[2] or match[1]
        if whole(last) - whole(first) + len(numbers) >= MOST_NAMES:
            raise ValueError(f"{item[:40]!r} names more than {MOST_NAMES:,} hosts")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


_NUMBERED = re.compile(r"(.*?)(\d{1,9})")


def fold(names: Iterable[str]) -> str:
    """The list of hosts that `expand` takes apart again, in order: `n[1-3],x`."""
    groups: dict[tuple[str, int], set[int]] = {}
    plain = set()
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            plain.add(name)
        else:
            groups.setdefault((match[1], len(match[2])), set()).add(int(match[2]))
    folded = [_folded(prefix, width, sorted(numbers)) for (prefix, width), numbers in sorted(groups.items())]
    return ",".join([*folded, *sorted(plain)])


def _folded(prefix: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [
        f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}" for first, last in runs
    ]
    return f"{prefix}{words[0]}" if len(numbers) == 1 else f"{prefix}[{','.join(words)}]"
