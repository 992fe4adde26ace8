"""The seal of a spool's files: only what was written with our key, for this place, is opened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.maildir import Envelope, Seal, SealError

SEAL = Seal("the workers' key")
ENVELOPE = Envelope("7-n1-42", [b"one", b"two"])


@given(st.text(), st.lists(st.binary(max_size=50), max_size=5), st.text(max_size=40))
def test_what_is_closed_can_be_opened(worker: str, messages: list[bytes], place: str) -> None:
    envelope = Envelope(worker, messages)
    assert SEAL.open(place, SEAL.close(place, envelope)) == envelope


@given(st.data())
def test_a_torn_or_changed_file_is_turned_away(data: st.DataObject) -> None:
    sealed = SEAL.close("in/x", ENVELOPE)
    cut = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(SealError, match="in/x"):
        SEAL.open("in/x", sealed[:cut])
    changed = bytearray(sealed)
    changed[cut] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealError):
        SEAL.open("in/x", bytes(changed))


def test_a_file_of_another_key_or_place_is_turned_away() -> None:
    sealed = SEAL.close("in/x", ENVELOPE)
    with pytest.raises(SealError):
        Seal("another daemon's key").open("in/x", sealed)
    with pytest.raises(SealError):
        SEAL.open("out/x", sealed)


def test_a_file_of_another_version_is_said_so() -> None:
    seal = Seal("key")
    content = b"\x93\x01\x02\x03"
    with pytest.raises(SealError, match="cannot be decoded"):
        seal.open("in/x", seal._seal("in/x", content) + content)
