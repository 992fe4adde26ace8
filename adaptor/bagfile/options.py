"""The options of a bag as people write them, on `#ADAPTOR` lines and on the command line alike."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, get_args

import msgspec

from adaptor.budget.provisioning.presets import PREFERENCES
from adaptor.donation.situation import Allocation
from adaptor.units import parse_duration, parse_size


class BagOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said of a bag; None where nothing was said."""

    name: str | None = None
    cpus: int | None = None
    memory: int | None = None
    """Bytes of one task."""
    retries: int | None = None
    replicas: int | None = None
    sites: list[str] | None = None
    cwd: str | None = None
    output: str | None = None
    budget: float | None = None
    """Credits that it may cost."""
    deadline: float | None = None
    """Epoch seconds."""
    prefer: str | None = None
    allocation: Allocation | None = None

    def under(self, stronger: BagOptions) -> BagOptions:
        """These options, with those of `stronger` in their place where it says something."""
        said = {key: value for key, value in msgspec.structs.asdict(stronger).items() if value is not None}
        return msgspec.structs.replace(self, **said)


def plain_text(text: str) -> str:
    """The same text.

    Raises:
        ValueError: it holds a NUL byte, or bytes that are not UTF-8 (lone surrogates in Python's eyes).
    """
    if "\0" in text:
        raise ValueError("holds a NUL byte, which no command line can carry")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} is not UTF-8 text") from None
    return text


def _label(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{text!r} is not a name: it must be printable text")
    return plain_text(text)


def _path(text: str) -> str:
    if not text:
        raise ValueError("an empty text is not a path")
    return plain_text(text)


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise ValueError(f"{text!r} is not an integer of {least} or more")
        return int(text)

    return parse


def _memory(text: str) -> int:
    size = parse_size(text)
    if size <= 0:
        raise ValueError(f"{text!r} is no memory at all; write bytes, '512M' or '4G'")
    return size


def _credits(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 1e-6):
        raise ValueError(f"{text!r} is not a number of credits above 0, such as 500 or 2.5")
    return number


def _deadline(text: str) -> float:
    """From now, or an instant in local time."""
    try:
        return time.time() + parse_duration(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is neither a time from now, such as 12h, nor 2026-11-22T08:00") from None


def _one_of(words: Collection[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return parse


def _sites(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    return [_label(name) for name in names]


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "name": ("name", _label),
    "cpus": ("cpus", _at_least(1)),
    "mem": ("memory", _memory),
    "retries": ("retries", _at_least(0)),
    "replicas": ("replicas", _at_least(0)),
    "site": ("sites", _sites),
    "sites": ("sites", _sites),
    "cwd": ("cwd", _path),
    "output": ("output", _path),
    "budget": ("budget", _credits),
    "deadline": ("deadline", _deadline),
    "prefer": ("prefer", _one_of(PREFERENCES)),
    "allocation": ("allocation", _one_of(get_args(Allocation))),
}


def parse_option(key: str, text: str) -> tuple[str, Any]:
    """The field of BagOptions that `key` means, and its value.

    Raises:
        ValueError: the key is unknown, or the text is not one of its values; the message says which.
    """
    if key not in _PARSERS:
        near = difflib.get_close_matches(key, _PARSERS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(_PARSERS)}"
        raise ValueError(f"unknown option '{key}' ({hint})")
    field, parse = _PARSERS[key]
    try:
        return field, parse(text)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
