"""Decoding what another process, or another host, has written: any failure is one kind of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

_Message = TypeVar("_Message")


def decoded(decode: Callable[[bytes], _Message], data: bytes) -> _Message:
    """Decode the data by `decode`, the method of a msgspec decoder.

    Raises msgspec.DecodeError: the data is not of that type; bad text and a bomb of nested lists too, for
    which msgspec has other errors.
    """
    try:
        return decode(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error
