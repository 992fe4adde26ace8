"""Questions of the command line and their answers."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.protocol.control import decode_answer, decode_question

NESTED = b"\x82\xa4type\xa6Cancel\xa3zzz" + b"\x91" * 200_000 + b"\xc0"
BAD_TEXT = b"\x82\xa4type\xa2\xff\xfe\xa4bags\x90"


@pytest.mark.parametrize("data", [NESTED, BAD_TEXT, b"", b"no message"])
def test_a_hostile_question_or_answer_is_refused_as_any_other(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_question(data)
    with pytest.raises(msgspec.DecodeError):
        decode_answer(data)
