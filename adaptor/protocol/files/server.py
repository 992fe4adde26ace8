"""`python -m adaptor.protocol.files.server`: works on private files of this machine for a remote daemon.

The daemon starts it over ssh and talks to it through its standard input and output in frames (see
`frames`): it greets, answers each `FileWork`, and ends when its input ends. It is assumed that the login node
has this package in the daemon's version, as `site check` demands, and nothing else: no shell takes part.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.protocol.decoding import decoded
from adaptor.protocol.files.frames import FrameError, receive, send
from adaptor.protocol.files.local import LOCAL_FILES, FilesDone, FilesError, FileWork


class Greeting(msgspec.Struct, frozen=True, tag=True):
    """The first frame."""

    version: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The work cannot be done now."""

    message: str


Reply = Greeting | Failed | FilesDone

_work = msgspec.msgpack.Decoder(FileWork)
_encode = msgspec.msgpack.Encoder().encode


def serve(reading: int, writing: int) -> None:
    """Greet, then answer until the input ends. Raises FrameError."""
    send(writing, _encode(Greeting(__version__)))
    while (data := receive(reading)) is not None:
        send(writing, _encode(_reply_to(data)))


def _reply_to(data: bytes) -> Reply:
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
