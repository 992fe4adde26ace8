"""Bounds of numbers and durations: one check for durations, the same words for all."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect as types

from adaptor.config import ranges
from adaptor.config.ranges import KeyBounds, bounds_of, out_of_range
from adaptor.units import Duration


class Inner(msgspec.Struct):
    wait: ranges.PositiveDuration | None = None


class Outer(msgspec.Struct):
    unit: ranges.ChargingUnit = Duration(1)
    inner: Inner | None = None
    named: dict[str, Inner] = {}


def complaints(value: Outer) -> list[str]:
    return [path for path, _ in out_of_range(types.type_info(Outer), value, "$")]


def test_durations_are_checked_wherever_they_are() -> None:
    bad = Inner(Duration(0))
    assert complaints(Outer()) == []
    assert complaints(Outer(Duration(1.5), bad, {"a": Inner(), "b": bad})) == [
        "$.unit",
        "$.inner.wait",
        "$.named.b.wait",
    ]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ranges.PositiveCount, "must be more than 0 and at most 1000000000"),
        (ranges.PortNumber, "must be from 0 to 65535"),
        (ranges.PositiveFraction, "must be more than 0 and at most 1"),
        (ranges.Credits, "must be from 0.000001 to 1000000000"),
        (ranges.AtLeastASecond, "must be 1s or more"),
        (ranges.ChargingUnit, "must be whole seconds from 1s to 1h"),
        (Annotated[int, msgspec.Meta(ge=2)], "must be 2 or more"),
    ],
)
def test_the_words_of_a_range(kind: object, words: str) -> None:
    bounds = bounds_of(types.type_info(kind))
    assert bounds is not None
    assert bounds.words() == words


@given(st.floats(), *2 * [st.floats(allow_nan=False, allow_infinity=False)])
def test_a_value_holds_as_msgspec_would_decide(value: float, low: float, high: float) -> None:
    try:
        msgspec.convert(value, Annotated[float, msgspec.Meta(ge=low, le=high)])
        inside = True
    except msgspec.ValidationError:
        inside = False
    assert KeyBounds(ge=low, le=high).hold(value) == inside
