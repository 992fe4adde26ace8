"""The connection to the daemon through a spool: files in a shared folder (see `adaptor.protocol.spool`)."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import select
import time
from pathlib import Path

from adaptor.protocol.access import Access
from adaptor.protocol.spool.files import remove_file, remove_folder, write_file
from adaptor.protocol.spool.flow import Outgoing
from adaptor.protocol.spool.layout import (
    LATENCY,
    Connection,
    folder_at,
    for_worker,
    from_workers,
    worker_file_name,
)
from adaptor.protocol.spool.pace import QUICKEST, Pace
from adaptor.protocol.spool.seal import Envelope, Seal
from adaptor.safe_open import open_folder
from adaptor.worker.answers import Answers
from adaptor.worker.transport import Say, TransportError


class SpoolConnector:
    """See `Connector`. Each connection has a folder of its own, so it reads nothing of the one before."""

    patience = 3 * LATENCY

    def __init__(self, identity: str, wakeup: int, say: Say) -> None:
        """`identity`: the worker's name, `<pilot>-…`."""
        self._identity = identity
        self._wakeup = wakeup
        self._say = say
        self._pilot = int(identity.partition("-")[0])
        self._token = secrets.token_hex(4)
        self._connections = 0

    def connect(self, access: Access, address: str) -> SpoolTransport:
        """Raises TransportError: there is no such spool, or it cannot be written."""
        self._connections += 1
        connection = Connection(self._pilot, self._token, self._connections).name
        try:
            folder = folder_at(address)
            os.close(
                open_folder(str(folder), ours=True)
            )  # its messages are for the daemon of this user alone
            for_worker(folder, connection).mkdir(mode=0o700)
        except (OSError, ValueError) as error:
            raise TransportError(f"{address}: {error}") from error
        return SpoolTransport(
            folder, connection, self._identity, Seal(access.own.key), self._wakeup, self._say
        )

    def end(self) -> None:
        """The connections share nothing."""


class SpoolTransport:
    """See `Transport`. Times are monotonic seconds."""

    broken = False

    def __init__(self, folder: Path, connection: str, worker: str, seal: Seal, wakeup: int, say: Say) -> None:
        self.problem = ""
        self._folder = folder
        self._connection = connection
        self._worker = worker
        self._seal = seal
        self._outgoing = Outgoing()
        self._answers = Answers(for_worker(folder, connection), connection, seal, say)
        self._pace = Pace()
        self._next_look = self._next_file = time.monotonic()
        self._poll = select.poll()
        self._poll.register(wakeup, select.POLLIN)

    def send(self, data: bytes) -> bool:
        now = time.monotonic()
        self._pace.speed_up()
        self._next_look = min(self._next_look, now + QUICKEST)
        if not self._outgoing.add(data):
            return False
        self._write(now)
        return True

    def receive(self, seconds: float) -> list[bytes]:
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            self._write(now)
            if now >= self._next_look and (messages := self._look(now)):
                return messages
            if now >= until or self._poll.poll(math.ceil(1000 * max(0.0, self._due(until) - now))):
                return []

    def close(self, linger: float) -> None:
        if linger > 0:
            while self._write(time.monotonic(), all=True):
                pass
        else:  # the daemon must not read messages of a connection that was given up
            for number in self._outgoing.unread:
                with contextlib.suppress(OSError):
                    remove_file(from_workers(self._folder) / worker_file_name(self._connection, number))
        remove_folder(for_worker(self._folder, self._connection))

    def _due(self, until: float) -> float:
        """Monotonic seconds at which the next look or write is due."""
        dues = [until, self._next_look]
        if self._outgoing.due(self._answers.last) is not None:
            dues.append(self._next_file)
        return min(dues)

    def _look(self, now: float) -> list[bytes]:
        """Read the daemon's files."""
        try:
            messages = self._answers.fetch(now)
        except OSError as error:
            self.problem = f"{self._folder}: {error.strerror or error}"
            messages = []
        if messages:
            self._pace.speed_up()
            self.problem = ""
        else:
            self._pace.slow_down()
        self._outgoing.note_read(self._answers.read_by_daemon)
        self._next_look = time.monotonic() + self._pace.pause
        return messages

    def _write(self, now: float, *, all: bool = False) -> bool:
        """Write the next file if it is due. Returns whether it did; after an error it is due again later."""
        file = self._outgoing.due(self._answers.last, all=all)
        if file is None or (now < self._next_file and not all):
            return False
        self._next_file = now + QUICKEST
        name = worker_file_name(self._connection, file.number)
        envelope = Envelope(self._worker, file.messages, file.oldest, self._answers.read(file.read))
        data = self._seal.close(f"in/{name}", envelope)
        try:
            write_file(from_workers(self._folder) / name, data)
        except OSError as error:
            self.problem = f"{self._folder}: {error.strerror or error}"
            self._next_file = now + self._pace.slowest
            return False
        self._outgoing.written()
        return True
