"""Decoding what another process, or another host, has written: any failure is one kind of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

_Message = TypeVar("_Message")


def decoded(decode: Callable[[bytes], _Message], data: bytes) -> _Message:
    """What `decode`, of a msgspec decoder, makes of the data.

    Raises msgspec.DecodeError: it is anything else; bad text and a bomb of nested lists too, for which
    msgspec has other errors.
    """
    try:
        return decode(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error
