"""Which bags a user means: `last`, `all`, `7`, `1-10`, `1,3,5-7`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adaptor.errors import UsageError

_PART = re.compile(r"(\d+)(?:-(\d+))?")


def check_selector(text: str) -> None:
    """Raises UsageError: this is no selector."""
    if text in ("last", "all"):
        return
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"{text!r} selects no bags; write 'last', 'all', '7', '1-10' or '1,3,5-7'")


def select(text: str, known: Sequence[int]) -> list[int]:
    """The chosen ones of the known bag ids, in ascending order.

    Raises:
        UsageError: no selector, or a single number that is no bag.
    """
    check_selector(text)
    if text == "all":
        return sorted(known)
    if text == "last":
        return [max(known)] if known else []
    chosen: set[int] = set()
    for part in text.split(","):
        first, last = (int(n) if n else None for n in _PART.fullmatch(part.strip()).groups())  # type: ignore[union-attr]
        found = {bag for bag in known if first is not None and first <= bag <= (last or first)}
        if not found and last is None:
            raise UsageError(f"there is no bag {first}; `adaptor status all` lists them")
        chosen |= found
    return sorted(chosen)
