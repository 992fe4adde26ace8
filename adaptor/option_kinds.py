"""The kinds of value that an option of a bag takes: how a person writes each, and what it means."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from adaptor.units import parse_duration, parse_size, shortened


class Kind(msgspec.Struct, frozen=True):
    """One kind of value."""

    metavar: str
    """What the help shows in place of a value."""
    parse: Callable[[str, float], Any]
    """The value of a text at a time (epoch seconds). Raises ValueError: the text is no such value."""
    words: tuple[str, ...] = ()
    """All values, where these are a few words."""
    several: bool = False
    """True if the text is a list with commas; the command line then takes the option repeatedly too."""


def plain_text(text: str) -> str:
    """The same text.

    Raises:
        ValueError: it holds a NUL byte, or bytes that are not UTF-8 (lone surrogates in Python's eyes).
    """
    if "\0" in text:
        raise ValueError("contains a NUL byte, which no command line can carry")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{shortened(text)} is not UTF-8 text") from None
    return text


def _label(text: str, _now: float = 0.0) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{shortened(text)} is not a name: it must be printable text")
    return plain_text(text)


def _labels(text: str, _now: float) -> tuple[str, ...]:
    return tuple(_label(name.strip()) for name in text.split(","))


def _path(text: str, _now: float) -> str:
    if not text:
        raise ValueError("an empty text is not a path")
    return plain_text(text)


def _memory(text: str, _now: float) -> int:
    size = parse_size(text)
    if size <= 0:
        raise ValueError(f"{shortened(text)} is not a size above 0; write bytes, '512M' or '4G'")
    return size


def _credits(text: str, _now: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 1e-6):
        raise ValueError(f"{shortened(text)} is not a number of credits above 0, such as 500 or 2.5")
    return number


def _instant(text: str, now: float) -> float:
    """A time from now, or a time of the calendar by the local clock."""
    try:
        return now + parse_duration(text)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text).timestamp()
        datetime.fromtimestamp(at)  # as it will be shown
        return at
    except (ValueError, OverflowError, OSError):
        shown = shortened(text)
        raise ValueError(f"{shown} is neither a time from now, such as 12h, nor 2026-11-22T08:00") from None


LABEL = Kind("TEXT", _label)
LABELS = Kind("NAME", _labels, several=True)
PATH = Kind("DIR", _path)
MEMORY = Kind("SIZE", _memory)
"""Bytes."""
CREDITS = Kind("CREDITS", _credits)
INSTANT = Kind("TIME", _instant)
"""Epoch seconds."""


def integer(least: int, most: int) -> Kind:
    """Integers from `least`, below 10, to `most`."""

    def parse(text: str, _now: float) -> int:
        digits = text.lstrip("0") or "0"
        if not text.isascii() or not text.isdigit() or (len(digits) == 1 and int(digits) < least):
            raise ValueError(f"{shortened(text)} is not an integer of {least} or more")
        if len(digits) > len(str(most)) or int(digits) > most:
            raise ValueError(f"{shortened(text)} is more than {most:,}")
        return int(digits)

    return Kind("N", parse)


def choice(words: Sequence[str]) -> Kind:
    """One of a few words."""

    def parse(text: str, _now: float) -> str:
        if text not in words:
            raise ValueError(f"{shortened(text)} is not one of {', '.join(words)}")
        return text

    return Kind("WORD", parse, tuple(words))
