"""The private files of another machine: `python -m adaptor.protocol.files.server` works on them there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import IO

import msgspec

from adaptor import __version__
from adaptor.errors import AdaptorError
from adaptor.processes.talk import Talk
from adaptor.protocol.decoding import decoded
from adaptor.protocol.files.local import FilesDone, FilesError, FileWork
from adaptor.protocol.files.server import Failed, FilesReply, FrameError, Greeting, receive, send

_reply: msgspec.msgpack.Decoder[FilesReply] = msgspec.msgpack.Decoder(FilesReply)
_encode = msgspec.msgpack.Encoder().encode


class RemoteFiles:
    """See `Files`. A process that has ended or hangs is replaced when work comes next."""

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
            self._check_greeting(self._receive(self._talk, time.monotonic() + self._timeout))
        return self._talk

    def _check_greeting(self, greeting: FilesReply) -> None:
        if isinstance(greeting, Greeting) and greeting.version == __version__:
            return
        self._end()
        if isinstance(greeting, Greeting):
            raise FilesError(
                f"version {greeting.version} is installed there and {__version__} here: make them equal"
            )
        raise FilesError("the file server does not greet")

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
    """Raises FrameError: there is no such pipe any more."""
    if pipe is None or pipe.closed:
        raise FrameError("it was ended")
    return pipe.fileno()
