"""Files behind a process that is talked to, and the files of workers in a spool."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from adaptor.processes.talk import Talk
from adaptor.protocol.files.remote import RemoteFiles
from adaptor.protocol.maildir import SpoolConnection, file_name, from_workers

CONNECTION = SpoolConnection(7, "0123abcd", 1)


class Talks:
    """Starts file servers and remembers them."""

    def __init__(self) -> None:
        self.words = [sys.executable, "-m", "adaptor.protocol.files.remote"]
        self.started: list[Talk] = []

    def start(self) -> Talk:
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `end`)
        try:
            process = subprocess.Popen(
                self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        except OSError:
            errors.close()
            raise
        self.started.append(Talk(process, errors))
        return self.started[-1]


def distant(timeout: float = 120.0) -> RemoteFiles:
    return RemoteFiles(Talks().start, timeout)


def put_worker_file(
    spool: Path, data: bytes, number: int = 1, connection: SpoolConnection = CONNECTION
) -> str:
    """Write as a worker does; the file's name."""
    name = file_name(connection.name, number)
    (from_workers(spool) / name).write_bytes(data)
    return name
