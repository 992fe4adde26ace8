"""The kinds of value that an option of a bag takes: how a person writes each, and what it means."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from adaptor.guard_rails import EarlySignal, MostFails, TimeLimit
from adaptor.resources import TaskGpus
from adaptor.units import parse_duration, parse_instant, parse_size, shortened


class Kind(msgspec.Struct, frozen=True):
    """One kind of value."""

    metavar: str
    """The help's placeholder for a value."""
    parse: Callable[[str, float], Any]
    """The value of a text at a time (epoch seconds). Raises ValueError: the text is no such value."""
    words: tuple[str, ...] = ()
    """All values, where these are a few words."""
    several: bool = False
    """True if the text is a list with commas; the command line then takes the option repeatedly too."""


LONGEST_ARGUMENT = 128 * 1024 - 1  # bytes: MAX_ARG_STRLEN of Linux less the NUL

IMPLIED = Kind("", lambda text, _now: text)  # the kind of the field's type


def plain_text(text: str) -> str:
    """The text, checked.

    Raises:
        ValueError: the text holds a NUL byte, or bytes that are not UTF-8 (lone surrogates in Python's eyes),
            or is longer than Linux takes.
    """
    if "\0" in text:
        raise ValueError("contains a NUL byte, which no command line can carry")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{shortened(text)} is not UTF-8 text") from None
    if size > LONGEST_ARGUMENT:
        raise ValueError(
            f"{shortened(text)} has {size:,} bytes, and Linux takes {LONGEST_ARGUMENT:,} in one argument or"
            " shell line; put the data in a file, or the line in a script"
        )
    return text


def _label(text: str, _now: float = 0.0) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{shortened(text)} is not a name: it must be printable text")
    return plain_text(text)


BAG_WORDS = ("last", "all", "recent")
"""Words that select bags in commands."""
BAG_NUMBERS = re.compile(r"[\s\d,-]*\d[\s\d,-]*", re.ASCII)
"""Numbers and ranges that select bags in commands."""


def _bag_name(text: str, _now: float) -> str:
    if text in BAG_WORDS or BAG_NUMBERS.fullmatch(text):
        raise ValueError(f"{shortened(text)} selects other bags in commands; add a word, such as bag-{text}")
    return _label(text)


def _shell(text: str, _now: float) -> str:
    try:
        words = shlex.split(plain_text(text))
    except ValueError as error:
        raise ValueError(f"{shortened(text)} is not a shell and its options: {error}") from None
    if not words or not words[0] or not text.isprintable():
        raise ValueError(f"{shortened(text)} names no shell; write bash, zsh or 'bash -l'")
    return text


def _items(text: str) -> list[str]:
    """The items of a list with commas; one whose text has a comma writes a backslash before it."""
    return [item.strip().replace(r"\,", ",") for item in re.split(r"(?<!\\),", text)]


def _labels(text: str, _now: float) -> tuple[str, ...]:
    return tuple(map(_label, _items(text)))


def _numbers(text: str, _now: float) -> tuple[int, ...]:
    """Numbers of bags, each once."""
    found = [each.strip() for each in text.split(",")]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in found):
        raise ValueError(
            f"{shortened(text)}: write numbers of bags, such as 7 or 7,9, or `last` as an option"
        )
    return tuple(dict.fromkeys(map(int, found)))


def _path(text: str, _now: float) -> str:
    if not text:
        raise ValueError("an empty text is not a path")
    return plain_text(text)


def _paths(text: str, now: float) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_path(path, now) for path in _items(text)))


def _memory(text: str, _now: float) -> int:
    size = parse_size(text)
    if size <= 0:
        raise ValueError(f"{shortened(text)} is not a size above 0; write '512M' or '4G'")
    return size


def _memory_or_auto(text: str, now: float) -> int | str:
    return text if text == AUTO else _memory(text, now)


# The parts of a divided GPU have types that begin with a digit: 1g.10gb.
_GPUS = re.compile(
    r"(?:(?P<type>(?=[\d.]*[A-Za-z])\w[\w.+-]{0,63}):)?(?P<count>\d{1,4}|0?\.\d{1,9})", re.ASCII
)


def _gpus(text: str, _now: float) -> TaskGpus | None:
    """GPUs of a task; None: no GPU, as if the option were not there."""
    found = _GPUS.fullmatch(text)
    if found is None:
        raise ValueError(f"{shortened(text)} is not a number of GPUs; write 2, 0.5 or a100:1")
    count = float(found["count"])
    return TaskGpus(count, found["type"] or "") if count else None


_FACTOR = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)x?", re.ASCII)


def _factor(text: str, _now: float) -> float:
    found = _FACTOR.fullmatch(text)
    if found is None or not 1.1 <= float(found[1]) <= 100:
        raise ValueError(f"{shortened(text)} is not a factor from 1.1x to 100x, such as 2x")
    return float(found[1])


def _credits(text: str, _now: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 1e-6):
        raise ValueError(f"{shortened(text)} is not a number of credits above 0, such as 500 or 2.5")
    return number


def _duration(text: str, _now: float) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(
            f"{shortened(text)} is not a duration above 0; write seconds, '1h 30m' or 'HH:MM:SS'"
        )
    return seconds


_PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*%", re.ASCII)


def _time_limit(text: str, now: float) -> TimeLimit:
    if not (found := _PERCENT.fullmatch(text.strip())):
        return TimeLimit(seconds=_duration(text, now))
    part = float(found[1]) / 100
    if part < 1:
        raise ValueError(
            f"{shortened(text)} would end tasks that take as long as expected; write 100% or more"
        )
    return TimeLimit(part=part)


def _most_fails(text: str, now: float) -> MostFails:
    if not (found := _PERCENT.fullmatch(text.strip())):
        return MostFails(tasks=integer(1, 1_000_000_000).parse(text.strip(), now))
    share = float(found[1]) / 100
    if not 0 < share <= 1:
        raise ValueError(f"{shortened(text)} is not a part of the tasks: write more than 0% and at most 100%")
    return MostFails(share=share)


_SIGNALS = ("USR1", "USR2", "TERM", "INT", "HUP", "QUIT", "ALRM", "CONT", "URG", "XCPU")
"""Signals that a program may take for "checkpoint now"."""


def _early_signal(text: str, now: float) -> EarlySignal:
    word, at, ahead = text.strip().partition("@")
    name = word.upper().removeprefix("SIG")
    if not at:
        raise ValueError(f"{shortened(text)} does not say how long before the end; write USR1@120")
    if name not in _SIGNALS:
        raise ValueError(f"{shortened(word)} is not one of the signals {', '.join(_SIGNALS)}; write USR1@120")
    return EarlySignal(f"SIG{name}", _duration(ahead, now))


def _exit_codes(text: str, _now: float) -> tuple[int, ...]:
    codes = tuple(integer(1, 255).parse(word.strip(), 0.0) for word in text.split(","))
    if never := [code for code in codes if code in (126, 127)]:
        raise ValueError(f"exit code {never[0]} is how a shell says that it cannot run a command; write 75")
    return codes


def _priority(text: str, _now: float) -> int:
    if not re.fullmatch(r"[+-]?\d{1,6}", text.strip(), re.ASCII):
        raise ValueError(f"{shortened(text)} is not an integer from -999999 to 999999")
    return int(text)


def _canary(text: str, now: float) -> str | int:
    if text in ("yes", "no"):
        return text
    try:
        return int(integer(1, 1_000_000_000).parse(text.strip(), now))
    except ValueError:
        raise ValueError(f"{shortened(text)} is not yes, no or a number of tasks") from None


def _listeners(text: str, _now: float) -> tuple[str, ...]:
    """Channels of the configuration, and files of URLs."""
    found = []
    for word in _items(text):
        if "://" in word:
            raise ValueError(
                "a URL on a command line or in a bag file is no secret: name a channel of the configuration, "
                "or a file of mode 0600 that holds the URL: @FILE"
            )
        found.append(_label(word))
    return tuple(found)


LABEL = Kind("TEXT", _label)
BAG_NAME = Kind("TEXT", _bag_name)
SHELL = Kind("SHELL", _shell)
LABELS = Kind("NAME", _labels, several=True)
LISTENERS = Kind("NAME|@FILE", _listeners, several=True)
NUMBERS = Kind("N", _numbers, several=True)
PATH = Kind("DIR", _path)
IMAGE = Kind("IMAGE.sif", _path)
PATHS = Kind("PATH", _paths, several=True)
MEMORY = Kind("SIZE", _memory)  # bytes
AUTO = "auto"
MEMORY_OR_AUTO = Kind("SIZE|auto", _memory_or_auto)  # bytes, or the word
FACTOR = Kind("Nx", _factor)
GPUS = Kind("[TYPE:]N", _gpus)
CREDITS = Kind("CREDITS", _credits)
INSTANT = Kind("TIME", parse_instant)  # epoch seconds
DURATION = Kind("DURATION", _duration)  # seconds, above 0
TIME_LIMIT = Kind("DURATION|N%", _time_limit)
MOST_FAILS = Kind("N|N%", _most_fails)
EARLY_SIGNAL = Kind("SIGNAL@DURATION", _early_signal)
EXIT_CODES = Kind("CODE", _exit_codes, several=True)
PRIORITY = Kind("N", _priority)
CANARY = Kind("yes|no|N", _canary)


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
