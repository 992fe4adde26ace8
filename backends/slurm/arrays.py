"""Job arrays: one line of squeue that stands for many waiting jobs."""

from __future__ import annotations

import re

_ARRAY = re.compile(r"(\d+)_\[([\d,:-]+)(?:%(\d+))?\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def elements(id: str) -> list[str]:
    """The ids of the elements of `123_[1-5,7]` that may start; any other id stands for itself.

    Of `123_[1-5%2]` only two may run at the same time, so these are its first two.
    """
    match = _ARRAY.fullmatch(id)
    if match is None:
        return [id]
    ids = [f"{match[1]}_{index}" for part in match[2].split(",") for index in _indices(part)]
    return ids[: int(match[3])] if match[3] else ids


def _indices(part: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None:
        return range(0)
    first = int(match[1])
    return range(first, int(match[2] or first) + 1, int(match[3] or 1))
