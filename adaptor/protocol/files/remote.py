"""The private files of another machine: `python -m adaptor.protocol.files.remote` works on them there.

The daemon starts it over ssh and talks to it through its standard input and output in frames (see `send`): it
greets, answers each `FileWork`, and ends when its input ends. It is assumed that the login node has this
package in the daemon's version, as `site check` demands, and nothing else: no shell takes part.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from adaptor import __version__
from adaptor.errors import AdaptorError
from adaptor.processes.talk import Talk
from adaptor.protocol.decoding import decoded
from adaptor.protocol.files.local import LOCAL_FILES, FilesDone, FilesError, FileWork

LARGEST = 512 * 1024 * 1024  # bytes of a frame, at most
_CHUNK = 1024 * 1024
_HEAD = struct.Struct(">I")


class FrameError(AdaptorError):
    """The other side is gone, is too slow, or does not send frames."""


def send(descriptor: int, data: bytes, deadline: float | None = None) -> None:
    """Write one frame. Raises FrameError."""
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
    """The first frame of the server there."""

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
    os.umask(0o077)  # folders on the way to a private folder are private, too
    os.chdir(Path.home())
    try:
        serve(sys.stdin.fileno(), sys.stdout.fileno())
    except FrameError as error:
        print(f"file server: {error}", file=sys.stderr)
        return 1
    return 0


_reply: msgspec.msgpack.Decoder[FilesReply] = msgspec.msgpack.Decoder(FilesReply)


class RemoteFiles:
    """Work on private files by a process elsewhere. One that has ended or hangs is replaced when work comes
    next."""

    def __init__(self, start: Callable[[], Talk], timeout: float) -> None:
        """
        Args:
            start: starts the server there; may raise AdaptorError or OSError.
            timeout: seconds for the start, and for each piece of work.
        """
        self._start = start
        self._timeout = timeout
        self._talk: Talk | None = None
        self._busy = threading.Lock()

    def run(self, work: FileWork) -> FilesDone:
        with self._busy:
            talk = self._reach()
            deadline = time.monotonic() + self._timeout
            try:
                send(_descriptor(talk.process.stdin), _encode(work), deadline)
            except FrameError as error:
                raise self._lost(talk, error) from error
            reply = self._receive(talk, deadline)
            if isinstance(reply, FilesDone):
                return reply
            if isinstance(reply, Failed):
                raise FilesError(reply.message)
            self._end()
            raise FilesError("the file server greets a second time")

    def close(self) -> None:
        """End the process; work that is under way fails."""
        talk = self._talk
        if talk is not None:
            talk.process.kill()
        with self._busy:
            self._end()

    def _end(self) -> None:
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.end()

    def _reach(self) -> Talk:
        if self._talk is not None and self._talk.process.poll() is not None:
            self._end()
        if self._talk is None:
            try:
                self._talk = self._start()
            except (OSError, AdaptorError) as error:
                raise FilesError(f"the file server cannot be started: {error}") from error
            greeting = self._receive(self._talk, time.monotonic() + self._timeout)
            if not isinstance(greeting, Greeting):
                self._end()
                raise FilesError("the file server does not greet")
            if greeting.version != __version__:
                self._end()
                raise FilesError(
                    f"version {greeting.version} is installed there and {__version__} here: make them equal"
                )
        return self._talk

    def _receive(self, talk: Talk, deadline: float) -> FilesReply:
        try:
            data = receive(_descriptor(talk.process.stdout), deadline)
            if data is None:
                raise FrameError("it has ended")
            return decoded(_reply.decode, data)
        except (FrameError, msgspec.DecodeError) as error:
            raise self._lost(talk, error) from error

    def _lost(self, talk: Talk, error: Exception) -> FilesError:
        try:
            words = talk.complaint()
        except (OSError, ValueError):  # it was ended in the meantime
            words = ""
        self._end()
        return FilesError(f"the file server does not answer: {error}{f' ({words})' if words else ''}")


def _descriptor(pipe: IO[bytes] | None) -> int:
    """Descriptor of a pipe. Raises FrameError: there is no such pipe any more."""
    if pipe is None or pipe.closed:
        raise FrameError("it was ended")
    return pipe.fileno()


if __name__ == "__main__":
    sys.exit(main())
