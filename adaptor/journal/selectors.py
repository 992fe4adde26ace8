"""Selectors of bags: `last`, `all`, `recent`, `7`, `1-10`, `1,3,5-7`, or the name of a bag."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adaptor.did_you_mean import did_you_mean
from adaptor.errors import UnknownBagError, UsageError
from adaptor.option_kinds import BAG_NUMBERS, BAG_WORDS

RECENT = 20  # newest bags that `recent` selects besides the unfinished ones
_PART = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_EXAMPLES = "write a number, a range such as 1-10, a name, 'last', 'all' or 'recent'"


def check_selector(text: str) -> None:
    """Raises UsageError: this cannot select bags, whatever their names are."""
    if not text.strip():
        raise UsageError(f"{text!r} selects no bags; {_EXAMPLES}")
    if BAG_NUMBERS.fullmatch(text):
        _parts(text)


def _parts(text: str) -> list[tuple[int, int | None]]:
    """The first and the last bag of each part; None: the part is a single number."""
    parts = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"{text!r} selects no bags; {_EXAMPLES}")
        parts.append((int(match[1]), int(match[2]) if match[2] else None))
    return parts


def ids_of(text: str, known: Mapping[int, str]) -> list[int]:
    """The chosen ones of the known bags, in ascending order.

    A name chooses the newest bag of that name. Digits, commas and dashes are numbers, not a name.

    Args:
        known: names by bag.

    Raises:
        UsageError: this is no selector, or no bag has this name.
        UnknownBagError: a single number is no bag.
    """
    if text == "all":
        return sorted(known)
    if text == "last":
        return [max(known)] if known else []
    check_selector(text)
    if not BAG_NUMBERS.fullmatch(text):
        return [_newest(text, known)]
    chosen: set[int] = set()
    for first, last in _parts(text):
        found = {bag for bag in known if first <= bag <= (first if last is None else last)}
        if not found and last is None:
            raise UnknownBagError(first)
        chosen |= found
    return sorted(chosen)


def _newest(name: str, known: Mapping[int, str]) -> int:
    bags = [bag for bag, its_name in known.items() if its_name == name]
    if not bags:
        hint = did_you_mean(name, [*dict.fromkeys(known.values()), *BAG_WORDS], _EXAMPLES)
        raise UsageError(f"no bag has the name {name!r} ({hint})")
    return max(bags)
