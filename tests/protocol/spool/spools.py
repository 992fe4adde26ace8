"""Mail rooms for tests: in this process, and behind a process that is talked to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from adaptor.protocol.spool.layout import Box, inbox, letter_name
from adaptor.protocol.spool.remote import DistantRoom

BOX = Box(7, "0123abcd", 1)


class LocalTalk:
    """A process with pipes, as a machine starts it."""

    def __init__(self, words: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `end`)
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )

    def complaint(self) -> str:
        self._errors.seek(0)
        return (self._errors.read().decode().strip().splitlines() or [""])[-1]

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait()
        self._errors.close()


class Talks:
    """Starts mail rooms for one folder and remembers them."""

    def __init__(self, room: Path) -> None:
        self.words = [sys.executable, "-m", "adaptor.protocol.spool.remote_server", str(room)]
        self.started: list[LocalTalk] = []

    def start(self) -> LocalTalk:
        self.started.append(LocalTalk(self.words))
        return self.started[-1]


def distant(room: Path, timeout: float = 30.0) -> DistantRoom:
    return DistantRoom(Talks(room).start, timeout)


def put_letter(room: Path, data: bytes, number: int = 1, box: Box = BOX) -> str:
    """Write as a worker does; the letter's name."""
    name = letter_name(box.name, number)
    (inbox(room) / name).write_bytes(data)
    return name
