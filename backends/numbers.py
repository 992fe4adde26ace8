"""Numbers in what schedulers print: none is so large that arithmetic with it fails, and none is NaN."""

from __future__ import annotations

import math
import re

LARGEST = 10**15
"""Beyond it nothing is a count, a size in bytes, or a time; and a float is no longer exact."""
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


def whole(text: str) -> int:
    """Raises ValueError: it is no integer, or larger than anything that a scheduler counts."""
    if not _WHOLE.fullmatch(text) or abs(number := int(text)) > LARGEST:
        raise ValueError(f"{text[:40]!r} is no whole number of a sensible size")
    return number


def finite(text: str) -> float:
    """Raises ValueError: it is no number, not finite, or larger than anything that a scheduler counts."""
    number = float(text)
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise ValueError(f"{text[:40]!r} is no number of a sensible size")
    return number
