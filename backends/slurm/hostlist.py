"""Slurm's short form of many host names: `n[1-3,07],gpu1`."""

from __future__ import annotations

import itertools
import re

_PIECE = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expand(text: str) -> list[str]:
    """The names one by one; several brackets in one name are counted through, the last one fastest.

    Raises:
        ValueError: the text is not a list of hosts.
    """
    if not text or text in ("(null)", "None assigned"):
        return []
    return [name for part in _split(text) for name in _expand_one(part)]


def _split(text: str) -> list[str]:
    """The parts between those commas that stand outside brackets."""
    parts = re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text)
    if ",".join(parts) != text:
        raise ValueError(f"{text!r} is not a list of hosts")
    return parts


def _expand_one(part: str) -> list[str]:
    pieces: list[list[str]] = []
    for prefix, ranges, plain in _PIECE.findall(part):
        if plain:
            pieces.append([plain])
        else:
            pieces.append([prefix + number for number in _numbers(ranges)])
    return ["".join(combination) for combination in itertools.product(*pieces)]


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ValueError(f"{ranges!r} is not a list of numbers and ranges")
        first, last = match[1], match[2] or match[1]
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers
