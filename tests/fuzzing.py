"""Hostile input for parsers: recorded text that was damaged, and what nobody would write.

The property is the same everywhere: a parser gives a value or an error of ours, in bounded time.
`make campaign` runs these tests with many more examples (`pytest -m fuzz --hypothesis-profile=campaign`).
"""

from __future__ import annotations

import contextlib
import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from adaptor.errors import AdaptorError

FIXTURES = Path(__file__).parents[1] / "fixtures"
SECONDS = 5.0
"""Seconds of this process's own time that one example may take; real ones take thousandths of it."""

NASTY = (
    *("", " ", "\0", "\n", "\n\n", "\r", "\t", "\f", "\x0b", "\x1c", "\x85", "\u2028", "\x1b[2J", "\ufeff"),
    *(
        "|",
        "=",
        ",",
        ":",
        ";",
        "+",
        "-",
        ".",
        "/",
        "\\",
        '"',
        "'",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "#",
        "&",
        "*",
    ),
    *("0", "-1", "00", "1e999", "1e308", "nan", "inf", "-inf", "0x10", "1_000", "٣", "²", "½", "1.5", "+5"),
    *(
        "9" * 20,
        "9" * 400,
        "9" * 5000,
        "99999999999-1",
        "1-2-3",
        "1:2:3:4:5",
        "31-12-9999",
        "999999-23:59:59",
    ),
    *(
        "[0-99999999999]",
        "n[0-9][0-9][0-9][0-9][0-9][0-9][0-9]",
        "[",
        "[]",
        "[a-b]",
        "[9-1]",
        "n[1,2",
        "n[[1]]",
    ),
    *("None", "N/A", "Unknown", "UNLIMITED", "(null)", "true", "null", "~", "<<: *a", "&a", "*a", "!!int x"),
    *("Job Id: ", "    job_state = R", "\tx", "job|", "Thu Jan  1 00:00:00 1970", "9999-12-31T23:59:59"),
    *("[" * 2000, "{" * 2000, "(" * 2000, "a:" * 2000, '{"a":' * 500, "\ud800", "é", "𝔘", "a" * 10_000),
)
"""Pieces that have broken parsers, or might."""

_operations = st.tuples(
    st.sampled_from(("insert", "insert", "replace", "replace", "delete", "repeat", "swap", "cut")),
    st.floats(0, 1),
    st.floats(0, 1),
    st.one_of(st.sampled_from(NASTY), st.text(max_size=8)),
)


def damaged(texts: Sequence[str]) -> st.SearchStrategy[str]:
    """One of the texts with a few faults in it, or nothing but what nobody would write."""
    recorded = st.builds(_apply, st.sampled_from(texts), st.lists(_operations, max_size=4))
    nonsense = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=20)), max_size=8).map("".join)
    return st.one_of(recorded, recorded, recorded, nonsense)


def recorded(*patterns: str) -> list[str]:
    """The text of all fixtures whose path matches, and their single lines."""
    texts = [
        path.read_text("utf-8", "surrogateescape")
        for pattern in patterns
        for path in sorted(FIXTURES.glob(pattern))
    ]
    assert texts, patterns
    return [*texts, *dict.fromkeys(line for text in texts for line in text.split("\n")[:40])]


def _apply(text: str, operations: Sequence[tuple[str, float, float, str]]) -> str:
    for kind, where, size, piece in operations:
        begin = _boundary(text, where)
        end = min(len(text), begin + 1 + int(size * size * 80))
        part = text[begin:end]
        if kind == "insert":
            text = text[:begin] + piece + text[begin:]
        elif kind == "replace":
            text = text[:begin] + piece + text[end:]
        elif kind == "delete":
            text = text[:begin] + text[end:]
        elif kind == "repeat":
            text = text[:end] + part * 3 + text[end:]
        elif kind == "swap":
            text = text[:begin] + text[end : end + len(part)] + part + text[end + len(part) :]
        else:
            text = text[:begin]
    return text


_WORD = 12


def _boundary(text: str, where: float) -> int:
    """A place in the text: behind a separator where one is near, as values are what parsers convert."""
    place = int(where * len(text))
    near = [text.find(mark, place, place + _WORD) for mark in "=|:, \n"]
    return min((found + 1 for found in near if found >= 0), default=place)


class TooSlowError(BaseException):
    """No parser catches it."""


@contextlib.contextmanager
def in_bounded_time() -> Iterator[None]:
    """Raises TooSlowError after SECONDS of this process's time, so that a busy machine makes no fault."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise TooSlowError(f"took more than {SECONDS:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def survives(
    parse: Callable[..., Any], *arguments: Any, errors: tuple[type[Exception], ...] = (AdaptorError,)
) -> None:
    """Parse; asserts that this gives a value without NaN, or one of these errors, in bounded time."""
    try:
        with in_bounded_time():
            value = parse(*arguments)
            if isinstance(value, Iterator):
                value = list(value)
    except errors as error:
        message = str(error)
        assert message
        if isinstance(error, AdaptorError):
            assert len(message) < 2000, f"a message of {len(message)} characters: {message[:200]}"
        return
    assert not _has_nan(value), f"NaN in {value!r}"


def _has_nan(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, msgspec.Struct):
        return any(_has_nan(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, Mapping):
        return any(map(_has_nan, value.values()))
    return isinstance(value, (list, tuple, AbstractSet)) and any(map(_has_nan, value))


def fuzz(test: Any) -> Any:
    """Marks a test with hypothesis as one of these."""
    quiet = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
    return pytest.mark.fuzz(quiet(test))
