"""Spools for tests: in this process, and behind a process that is talked to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from adaptor.protocol.maildir import Connection, file_name, from_workers
from adaptor.protocol.spool.remote import RemoteSpool

CONNECTION = Connection(7, "0123abcd", 1)


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
    """Starts spools for one folder and remembers them."""

    def __init__(self, spool: Path) -> None:
        self.words = [sys.executable, "-m", "adaptor.protocol.spool.remote_server", str(spool)]
        self.started: list[LocalTalk] = []

    def start(self) -> LocalTalk:
        self.started.append(LocalTalk(self.words))
        return self.started[-1]


def distant(spool: Path, timeout: float = 120.0) -> RemoteSpool:
    return RemoteSpool(Talks(spool).start, timeout)


def put_worker_file(spool: Path, data: bytes, number: int = 1, connection: Connection = CONNECTION) -> str:
    """Write as a worker does; the file's name."""
    name = file_name(connection.name, number)
    (from_workers(spool) / name).write_bytes(data)
    return name
