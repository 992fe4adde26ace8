"""The last lines of an output, read where they are shown: the daemon never waits for a slow disk."""

from __future__ import annotations

import os

from adaptor.outputs.finding import Place, open_place

_BYTES = 8192
_WIDTH = 400
"""Characters of a line."""


def tail(place: Place | None, lines: int = 20) -> str:
    """The last lines; empty where there is no such plain file of ours, or nothing in it."""
    if place is None:
        return ""
    try:
        with open_place(place, ours=True) as file:
            size = os.fstat(file.fileno()).st_size if place.size is None else place.size
            file.seek(place.start + max(0, size - _BYTES))
            text = file.read(min(size, _BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(_clean(line[:_WIDTH]) for line in text.splitlines()[-lines:]).strip("\n")


def _clean(line: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else "\N{MIDDLE DOT}" for each in line)
