"""The connection to the daemon through a spool: files in a shared folder (see `adaptor.protocol.maildir`)."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import select
import time
from pathlib import Path

import msgspec

from adaptor.private_files import open_folder
from adaptor.protocol import maildir
from adaptor.protocol.access import Access
from adaptor.protocol.files.local import LOCAL_FILES, FilesError, FileWork
from adaptor.worker.transport import Say, TransportError


class SpoolConnector:
    """Connects by files. Each connection has a folder of its own, so it reads nothing of the one before."""

    def __init__(self, identity: str, wakeup: int, say: Say) -> None:
        """`identity`: the worker's name, `<pilot>-…`."""
        self._identity = identity
        self._wakeup = wakeup
        self._say = say
        self._pilot = int(identity.partition("-")[0])
        self._token = secrets.token_hex(4)
        self._connections = 0

    def connect(self, access: Access, address: str) -> SpoolTransport:
        """Open a connection in a spool. Raises TransportError: there is no such spool, or it cannot be
        written."""
        self._connections += 1
        connection = maildir.SpoolConnection(self._pilot, self._token, self._connections).name
        try:
            folder = maildir.folder_at(address)
            # Its messages are for the daemon of this user alone.
            os.close(open_folder(str(folder), ours=True))
            maildir.for_worker(folder, connection).mkdir(mode=0o700)
        except (OSError, ValueError) as error:
            raise TransportError(f"{address}: {error}") from error
        return SpoolTransport(
            folder, connection, self._identity, maildir.Seal(access.own.key), self._wakeup, self._say
        )

    def end(self) -> None:
        """Does nothing: the connections share nothing."""


class SpoolTransport:
    """A connection by files in a spool. Times are monotonic seconds."""

    broken = False
    taken = False  # a folder does not say whether a daemon reads in it
    patience = 3 * maildir.LATENCY

    def __init__(
        self, folder: Path, connection: str, worker: str, seal: maildir.Seal, wakeup: int, say: Say
    ) -> None:
        self.problem = ""
        self._folder = folder
        self._connection = connection
        self._worker = worker
        self._outgoing = maildir.Outgoing(folder, maildir.from_workers(folder), connection, seal)
        self._answers = FilesOfDaemon(folder, connection, seal, say)
        self._pace = maildir.LookPace()
        self._next_look = self._next_file = time.monotonic()
        self._poll = select.poll()
        self._poll.register(wakeup, select.POLLIN)

    def send(self, data: bytes) -> bool:
        now = time.monotonic()
        self._pace.speed_up()
        self._next_look = min(self._next_look, now + maildir.QUICKEST)
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
            for number in range(
                max(1, self._outgoing.written + 1 - maildir.UNREAD), self._outgoing.written + 1
            ):
                _remove(self._outgoing.path(number))
        _remove(os.fsencode(maildir.for_worker(self._folder, self._connection)))

    def _look(self) -> list[bytes]:
        """Read the daemon's files."""
        try:
            messages = self._answers.fetch()
        except FilesError as error:
            self.problem = str(error)
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
        file = self._outgoing.next_file(self._worker) if anyhow or now >= self._next_file else None
        if file is None:
            return False
        self._next_file = now + maildir.QUICKEST
        try:
            done = LOCAL_FILES.run(
                FileWork(write=[msgspec.structs.replace(file, unless=b"") if anyhow else file])
            )
            if done.homeless:
                raise _no_folder(maildir.from_workers(self._folder))
        except FilesError as error:
            self.problem = str(error)
            self._next_file = now + self._pace.slowest
            return False
        if done.held:
            return False
        self._outgoing.done()
        return True


class FilesOfDaemon:
    """The daemon's files for one connection: read in order, verified and removed."""

    def __init__(self, spool: Path, connection: str, seal: maildir.Seal, say: Say) -> None:
        self._spool = spool
        self._folder = maildir.for_worker(spool, connection)
        self._seal = seal
        self._say = say
        self._taken: dict[str, int] = {}
        """Number of the file that was taken last, by run of the daemon, the present one last."""
        self._listing = maildir.Listing(maildir.parse_daemon_file, say)

    def fetch(self) -> list[bytes]:
        """The messages in all files present, in order. Raises FilesError."""
        folder = os.fsencode(self._folder)
        names = LOCAL_FILES.run(FileWork(names=[folder], fresh=True)).names.get(folder)
        if names is None:
            raise _no_folder(self._folder)
        found = self._listing.files(self._folder, names)
        # Those of the runs before come first, and a run's by their numbers.
        found.sort(key=lambda file: (file[0][0] not in self._taken, *file[0]))
        done = maildir.read_files(LOCAL_FILES, [path for _, path in found])
        ends = {end.path: end for end in done.ends}
        messages: list[bytes] = []
        for (run, number), path in found[: done.read]:
            self._taken.setdefault(run, 0)
            if run == next(reversed(self._taken)) and number > self._taken[run]:
                self._taken[run] = number
                if path in ends and (
                    envelope := maildir.opened(ends[path], self._spool, self._seal, self._say)
                ):
                    messages += envelope.messages
        try:
            LOCAL_FILES.run(FileWork(remove=[path for _, path in found[: done.read]]))
        except FilesError:
            if not messages:
                raise
        return messages  # the next look removes the rest, or brings the error again


def _remove(path: bytes) -> None:
    with contextlib.suppress(FilesError):
        LOCAL_FILES.run(FileWork(remove=[path]))


def _no_folder(folder: Path) -> FilesError:
    return FilesError(f"{folder}: {os.strerror(errno.ENOENT)}")
