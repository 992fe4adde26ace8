"""`python -m adaptor.protocol.spool.remote_server FOLDER`: runs a distant daemon's errands in a mailbox here.

The daemon starts it over ssh and talks to it through its standard input and output, in frames of
`mailbox_frames`: it greets, then answers each errand, and ends when its input does. The daemon keeps
the keys: what passes through here is sealed already.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.protocol.spool.directory import DirectoryRoom
from adaptor.protocol.spool.exchange import Errand, MailRoomError, Outcome
from adaptor.protocol.spool.frames import FrameError, receive, send


class Greeting(msgspec.Struct, frozen=True, tag=True):
    """The first frame."""

    version: str
    room: str
    """The absolute path of the mailbox, as its workers are to be told."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The mailbox cannot be used now."""

    message: str


class Answer(msgspec.Struct, frozen=True, tag=True):
    outcome: Outcome


Reply = Greeting | Failed | Answer

_errand = msgspec.msgpack.Decoder(Errand)
_encode = msgspec.msgpack.Encoder().encode


def serve(room: Path, reading: int, writing: int) -> None:
    """Greet, then run errands until the input ends. Raises FrameError."""
    try:
        here = DirectoryRoom(room)
    except MailRoomError as error:
        send(writing, _encode(Failed(str(error))))
        return
    send(writing, _encode(Greeting(__version__, str(room))))
    while (data := receive(reading)) is not None:
        send(writing, _encode(_answer(here, data)))


def _answer(room: DirectoryRoom, data: bytes) -> Reply:
    try:
        return Answer(room.run(_errand.decode(data)))
    except MailRoomError as error:
        return Failed(str(error))
    except msgspec.DecodeError as error:
        return Failed(f"an errand that is not understood ({error}); is version {__version__} the daemon's?")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m adaptor.protocol.spool.remote_server FOLDER", file=sys.stderr)
        return 2
    room = Path(arguments[0]).expanduser().absolute()
    try:
        serve(room, sys.stdin.fileno(), sys.stdout.fileno())
    except FrameError as error:
        print(f"mailroom: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
