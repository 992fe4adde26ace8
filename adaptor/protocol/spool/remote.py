"""A spool on another machine: `python -m adaptor.protocol.spool.remote_server` serves the exchanges there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

import msgspec

from adaptor import __version__
from adaptor.errors import AdaptorError
from adaptor.protocol.decoding import decoded
from adaptor.protocol.spool.exchange import Exchange, Outcome, SpoolError
from adaptor.protocol.spool.frames import FrameError, receive, send
from adaptor.protocol.spool.remote_server import Answer, Failed, Greeting, Reply

_reply: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_encode = msgspec.msgpack.Encoder().encode


class Talk(Protocol):
    """A process with pipes for its input and output."""

    @property
    def process(self) -> subprocess.Popen[bytes]: ...

    def complaint(self) -> str:
        """The last line of its standard error; empty where there is none."""

    def end(self) -> None:
        """Close the pipes and wait for its end."""


class RemoteSpool:
    """See `Spool`. The next exchange replaces a process that has ended or hangs."""

    def __init__(self, start: Callable[[], Talk], timeout: float) -> None:
        """
        Args:
            start: starts `remote_server` there; may raise AdaptorError or OSError.
            timeout: seconds for the start, and for each exchange.
        """
        self._start = start
        self._timeout = timeout
        self._talk: Talk | None = None
        self._folder: Path | None = None

    def locate(self) -> Path:
        self._reach()
        assert self._folder is not None
        return self._folder

    def run(self, exchange: Exchange) -> Outcome:
        answer = self._ask(self._reach(), exchange)
        if isinstance(answer, Answer):
            return answer.outcome
        if isinstance(answer, Failed):
            raise SpoolError(answer.message)
        self.close()
        raise SpoolError("the spool server greets a second time")

    def close(self) -> None:
        """End the process."""
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.end()

    def _reach(self) -> Talk:
        if self._talk is None:
            try:
                self._talk = self._start()
            except (OSError, AdaptorError) as error:
                raise SpoolError(f"the spool server cannot be started: {error}") from error
            self._folder = self._greeted(self._talk)
        return self._talk

    def _greeted(self, talk: Talk) -> Path:
        greeting = self._hear(talk, time.monotonic() + self._timeout)
        if isinstance(greeting, Greeting) and greeting.version == __version__:
            return Path(greeting.folder)
        self.close()
        if isinstance(greeting, Greeting):
            raise SpoolError(
                f"version {greeting.version} is installed there and {__version__} here: make them equal"
            )
        raise SpoolError(greeting.message if isinstance(greeting, Failed) else "no greeting")

    def _ask(self, talk: Talk, exchange: Exchange) -> Reply:
        deadline = time.monotonic() + self._timeout
        try:
            send(_descriptor(talk.process.stdin), _encode(exchange), deadline)
        except FrameError as error:
            raise self._lost(talk, error) from error
        return self._hear(talk, deadline)

    def _hear(self, talk: Talk, deadline: float) -> Reply:
        try:
            data = receive(_descriptor(talk.process.stdout), deadline)
            if data is None:
                raise FrameError("it has ended")
            return decoded(_reply.decode, data)
        except (FrameError, msgspec.DecodeError) as error:
            raise self._lost(talk, error) from error

    def _lost(self, talk: Talk, error: Exception) -> SpoolError:
        try:
            words = talk.complaint()
        except (OSError, ValueError):  # it was ended in the meantime
            words = ""
        self.close()
        return SpoolError(f"the spool server does not answer: {error}{f' ({words})' if words else ''}")


def _descriptor(pipe: IO[bytes] | None) -> int:
    """Raises FrameError: there is no such pipe any more."""
    if pipe is None or pipe.closed:
        raise FrameError("it was ended")
    return pipe.fileno()
