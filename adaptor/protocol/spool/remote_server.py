"""`python -m adaptor.protocol.spool.remote_server FOLDER`: serves a spool of this machine to a remote daemon.

The daemon starts it over ssh and talks to it through its standard input and output in frames (see
`frames`): it greets, answers each exchange, and ends when its input ends. It needs no key: the daemon
and the workers seal their files themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.protocol.decoding import decoded
from adaptor.protocol.spool.directory import DirectorySpool
from adaptor.protocol.spool.exchange import Exchange, Outcome, SpoolError
from adaptor.protocol.spool.frames import FrameError, receive, send


class Greeting(msgspec.Struct, frozen=True, tag=True):
    """The first frame."""

    version: str
    folder: str
    """The absolute path of the spool."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The spool cannot be used now."""

    message: str


class Answer(msgspec.Struct, frozen=True, tag=True):
    outcome: Outcome


Reply = Greeting | Failed | Answer

_exchange = msgspec.msgpack.Decoder(Exchange)
_encode = msgspec.msgpack.Encoder().encode


def serve(folder: Path, reading: int, writing: int) -> None:
    """Greet, then serve exchanges until the input ends. Raises FrameError."""
    try:
        spool = DirectorySpool(folder)
    except SpoolError as error:
        send(writing, _encode(Failed(str(error))))
        return
    send(writing, _encode(Greeting(__version__, str(folder))))
    while (data := receive(reading)) is not None:
        send(writing, _encode(_answer(spool, data)))


def _answer(spool: DirectorySpool, data: bytes) -> Reply:
    try:
        return Answer(spool.run(decoded(_exchange.decode, data)))
    except SpoolError as error:
        return Failed(str(error))
    except msgspec.DecodeError as error:
        return Failed(f"cannot decode the exchange: {error}; does the daemon run version {__version__}, too?")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m adaptor.protocol.spool.remote_server FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0]).expanduser().absolute()
    try:
        serve(folder, sys.stdin.fileno(), sys.stdout.fileno())
    except FrameError as error:
        print(f"spool server: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
