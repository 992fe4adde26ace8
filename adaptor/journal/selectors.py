"""Which bags a user means: `last`, `all`, `recent`, `7`, `1-10`, `1,3,5-7`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adaptor.errors import UnknownBagError, UsageError

WORDS = ("last", "all", "recent")
RECENT = 20  # newest bags that `recent` selects besides the unfinished ones
_PART = re.compile(r"(\d+)(?:-(\d+))?")


def check_selector(text: str) -> None:
    """Raises UsageError: this is no selector."""
    if text not in WORDS:
        _parts(text)


def _parts(text: str) -> list[tuple[int, int | None]]:
    """The first and the last bag of each part; None: the part is a single number."""
    parts = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(
                f"{text!r} selects no bags; write 'last', 'all', 'recent', '7', '1-10' or '1,3,5-7'"
            )
        parts.append((int(match[1]), int(match[2]) if match[2] else None))
    return parts


def ids_of(text: str, known: Sequence[int]) -> list[int]:
    """The chosen ones of the known bag ids, in ascending order.

    Raises:
        UsageError: this is no selector.
        UnknownBagError: a single number is no bag.
    """
    if text == "all":
        return sorted(known)
    if text == "last":
        return [max(known)] if known else []
    chosen: set[int] = set()
    for first, last in _parts(text):
        found = {bag for bag in known if first <= bag <= (first if last is None else last)}
        if not found and last is None:
            raise UnknownBagError(first)
        chosen |= found
    return sorted(chosen)
