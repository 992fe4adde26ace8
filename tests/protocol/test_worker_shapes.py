"""Workers of the last version go on with the daemon of the next one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adaptor.protocol.messages import Goodbye, Leaving, encode, says_goodbye
from tests.api.golden import WORKER_SHAPES
from tests.shapes import misfits, shapes, worker_types


def test_messages_look_as_those_that_were_recorded() -> None:
    """`python -m tests.api.golden` records anew what was added."""
    recorded = json.loads(WORKER_SHAPES.read_text(encoding="utf-8"))
    assert misfits(recorded, shapes(worker_types())) == []
    assert shapes(worker_types()) == recorded


class Pair(msgspec.Struct, array_like=True):
    one: int
    two: str = ""


class Longer(msgspec.Struct, array_like=True):
    one: int
    two: str = ""
    three: list[int] = []


class Needier(msgspec.Struct, array_like=True):
    one: int
    two: str
    three: list[int]


class Swapped(msgspec.Struct, array_like=True):
    two: str = ""
    one: int = 0


class Map(msgspec.Struct):
    one: int
    two: str = ""


@pytest.mark.parametrize(
    ("later", "fits"), [(Pair, True), (Longer, True), (Needier, False), (Swapped, False), (Map, False)]
)
def test_what_may_be_added(later: Any, fits: bool) -> None:
    (now,) = shapes([later]).values()
    assert (not misfits(shapes([Pair]), {"Pair": now})) is fits


def test_a_farewell_is_known_whatever_else_it_says() -> None:
    assert says_goodbye(encode(Goodbye(why=Leaving.IDLE)))
    assert says_goodbye(msgspec.msgpack.encode({"type": "Goodbye", "why": 7, "later": []}))
    for other in ({"type": "Report"}, {"kind": "Goodbye"}, ["Goodbye"]):
        assert not says_goodbye(msgspec.msgpack.encode(other))
    assert not says_goodbye(b"\xc1")
