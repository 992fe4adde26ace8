"""Long lists of ids in command lines that every system takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

CHUNK = 200
"""Ids in one command line: short enough for every system, and for a scheduler's patience."""


def chunks(ids: Collection[str]) -> Iterator[list[str]]:
    """The ids in lists of at most CHUNK."""
    ordered = list(ids)
    for first in range(0, len(ordered), CHUNK):
        yield ordered[first : first + CHUNK]
