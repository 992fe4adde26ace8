"""`python -m adaptor.protocol.files.server`: works on private files of this machine for a remote daemon.

The daemon starts it over ssh and talks to it through its standard input and output in frames (see
`send`): it greets, answers each `FileWork`, and ends when its input ends. It is assumed that the login node
has this package in the daemon's version, as `site check` demands, and nothing else: no shell takes part.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import time
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.errors import AdaptorError
from adaptor.protocol.decoding import decoded
from adaptor.protocol.files.local import LOCAL_FILES, FilesDone, FilesError, FileWork

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


class Greeting(msgspec.Struct, frozen=True, tag=True):
    """The first frame."""

    version: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The work cannot be done now."""

    message: str


FilesReply = Greeting | Failed | FilesDone

_work = msgspec.msgpack.Decoder(FileWork)
_encode = msgspec.msgpack.Encoder().encode


def serve(reading: int, writing: int) -> None:
    """Greet, then answer until the input ends. Raises FrameError."""
    send(writing, _encode(Greeting(__version__)))
    while (data := receive(reading)) is not None:
        send(writing, _encode(_reply_to(data)))


def _reply_to(data: bytes) -> FilesReply:
    try:
        return LOCAL_FILES.run(decoded(_work.decode, data))
    except FilesError as error:
        return Failed(str(error))
    except msgspec.DecodeError as error:
        return Failed(f"cannot decode the work: {error}; does the daemon run version {__version__}, too?")


def main() -> int:
    os.umask(0o077)  # what is made on the way to a private folder is private, too
    os.chdir(Path.home())
    try:
        serve(sys.stdin.fileno(), sys.stdout.fileno())
    except FrameError as error:
        print(f"file server: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
