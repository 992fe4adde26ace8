"""The connection to the daemon through a spool: files in a shared folder (see `adaptor.protocol.maildir`)."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import select
import time
from pathlib import Path

from adaptor.private_files import NotOursError, open_folder
from adaptor.protocol.access import Access
from adaptor.protocol.maildir import (
    LATENCY,
    QUICKEST,
    UNREAD,
    LookPace,
    Outgoing,
    SpoolConnection,
    file_name,
    folder_at,
    for_worker,
    from_workers,
    names_in,
    parse_daemon_file,
    read_file,
    remove_file,
    remove_folder,
    write_next,
)
from adaptor.protocol.seal import Envelope, Seal, SealError
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
        connection = SpoolConnection(self._pilot, self._token, self._connections).name
        try:
            folder = folder_at(address)
            # Its messages are for the daemon of this user alone.
            os.close(open_folder(str(folder), ours=True))
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
        self._answers = FilesOfDaemon(for_worker(folder, connection), connection, seal, say)
        self._pace = LookPace()
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
            if now >= self._next_look and (messages := self._look()):
                return messages
            dues = [until, self._next_look, *([self._next_file] if self._outgoing.due() else [])]
            if now >= until or self._poll.poll(math.ceil(1000 * max(0.0, min(dues) - now))):
                return []

    def close(self, linger: float) -> None:
        if linger > 0:
            while self._write(time.monotonic(), anyhow=True):
                pass
        else:  # the daemon must not read messages of a connection that was given up
            for number in range(max(1, self._outgoing.written + 1 - UNREAD), self._outgoing.written + 1):
                with contextlib.suppress(OSError):
                    remove_file(from_workers(self._folder) / file_name(self._connection, number))
        remove_folder(for_worker(self._folder, self._connection))

    def _look(self) -> list[bytes]:
        """Read the daemon's files."""
        try:
            messages = self._answers.fetch()
        except OSError as error:
            self.problem = f"{self._folder}: {error.strerror or error}"
            messages = []
        if messages:
            self._pace.speed_up()
            self.problem = ""
        else:
            self._pace.slow_down()
        self._next_look = time.monotonic() + self._pace.pause
        return messages

    def _write(self, now: float, *, anyhow: bool = False) -> bool:
        """Write the next file if it is due. Returns whether it did; else it is due again later."""
        messages = self._outgoing.due()
        if not messages or (now < self._next_file and not anyhow):
            return False
        self._next_file = now + QUICKEST
        name = file_name(self._connection, self._outgoing.written + 1)
        data = self._seal.close(f"in/{name}", Envelope(self._worker, messages))
        try:
            if not write_next(from_workers(self._folder), name, data, anyhow=anyhow):
                return False
        except OSError as error:
            self.problem = f"{self._folder}: {error.strerror or error}"
            self._next_file = now + self._pace.slowest
            return False
        self._outgoing.done()
        return True


class FilesOfDaemon:
    """The daemon's files for one connection: read in order, verified and removed."""

    def __init__(self, folder: Path, connection: str, seal: Seal, say: Say) -> None:
        self._folder = folder
        self._connection = connection
        self._seal = seal
        self._say = say
        self._taken: dict[str, int] = {}
        """By run of the daemon, the present one last: the number of the file that was taken last."""
        self._strange: set[str] = set()

    def fetch(self) -> list[bytes]:
        """The messages in all files present, in order. Raises OSError."""
        messages: list[bytes] = []
        for run, number in self._files():
            self._taken.setdefault(run, 0)
            path = self._folder / file_name(run, number)
            try:
                if run == next(reversed(self._taken)) and number > self._taken[run]:
                    messages += self._open(path)
                    self._taken[run] = number
                remove_file(path)
            except OSError:
                if not messages:
                    raise
                return messages  # the next look brings the rest, or the error again
        return messages

    def _files(self) -> list[tuple[str, int]]:
        """Run and number of each file: those of the runs before first, and a run's by their numbers."""
        found: list[tuple[str, int]] = []
        strange: set[str] = set()
        for name in names_in(self._folder):
            parsed = parse_daemon_file(name)
            if parsed is not None:
                found.append(parsed)
            elif not name.startswith("."):
                strange.add(name)
        for name in strange - self._strange:
            self._say(f"{self._folder}: {name!r} is not the daemon's: left alone")
        self._strange = strange
        return sorted(found, key=lambda file: (file[0] not in self._taken, *file))

    def _open(self, path: Path) -> list[bytes]:
        try:
            data = read_file(path)
            if data is None:
                return []
            return self._seal.open(f"out/{self._connection}/{path.name}", data).messages
        except NotOursError as error:
            self._say(f"ignored: {path}: {error.strerror}")
            return []
        except SealError as error:
            self._say(f"ignored: {error}")
            return []
