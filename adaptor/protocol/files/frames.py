"""Frames over a pair of pipes: a length *n* (four bytes, big-endian), then *n* bytes.

Each call has a deadline, because the process behind the pipes may hang. Deadlines are monotonic
seconds; None waits without limit.
"""

from __future__ import annotations

import os
import select
import struct
import time

from adaptor.errors import AdaptorError

LARGEST = 512 * 1024 * 1024
"""Bytes of a frame, at most."""
_CHUNK = 1024 * 1024
_HEAD = struct.Struct(">I")


class FrameError(AdaptorError):
    """The other side is gone, is too slow, or does not send frames."""


def send(descriptor: int, data: bytes, deadline: float | None = None) -> None:
    """Raises FrameError."""
    if len(data) > LARGEST:
        raise FrameError(f"{len(data)} bytes are too many for one frame")
    rest = memoryview(_HEAD.pack(len(data)) + data)
    os.set_blocking(descriptor, False)
    while rest:
        _await(descriptor, select.POLLOUT, deadline)
        try:
            rest = rest[os.write(descriptor, rest[:_CHUNK]) :]
        except BlockingIOError:  # room for less than that
            continue
        except OSError as error:
            raise FrameError(f"the other side has closed the pipe: {error.strerror}") from error


def receive(descriptor: int, deadline: float | None = None) -> bytes | None:
    """One frame; None: the other side has ended between two frames. Raises FrameError."""
    os.set_blocking(descriptor, False)
    head = _read(descriptor, _HEAD.size, deadline)
    if not head:
        return None
    (size,) = _HEAD.unpack(head)
    if size > LARGEST:
        raise FrameError(f"not a frame: {head!r}")
    body = _read(descriptor, size, deadline)
    if len(body) < size:
        raise FrameError("the other side ended in the middle of a frame")
    return body


def _read(descriptor: int, size: int, deadline: float | None) -> bytes:
    """`size` bytes; none if the other side has ended."""
    read = bytearray()
    while len(read) < size:
        _await(descriptor, select.POLLIN, deadline)
        try:
            chunk = os.read(descriptor, min(_CHUNK, size - len(read)))
        except BlockingIOError:
            continue
        except OSError as error:
            raise FrameError(f"the other side has closed the pipe: {error.strerror}") from error
        if not chunk and read:
            raise FrameError("the other side ended in the middle of a frame")
        if not chunk:
            break
        read += chunk
    return bytes(read)


def _await(descriptor: int, event: int, deadline: float | None) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    seconds = None if deadline is None else deadline - time.monotonic()
    if not poll.poll(None if seconds is None else max(0.0, seconds * 1000)):
        raise FrameError("no answer in time")
