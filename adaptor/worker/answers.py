"""The daemon's files for one connection of a worker: read in order, verified and removed."""

from __future__ import annotations

import contextlib
from pathlib import Path

from adaptor.protocol.spool.files import NotOursError, names_in, read_file, remove_file
from adaptor.protocol.spool.flow import Arrival, Incoming
from adaptor.protocol.spool.layout import daemon_file_name, parse_daemon_file
from adaptor.protocol.spool.seal import Read, Seal, SealError
from adaptor.worker.transport import Say


class Answers:
    """The files for one connection. Times are monotonic seconds."""

    def __init__(self, folder: Path, connection: str, seal: Seal, say: Say) -> None:
        self.read_by_daemon = 0
        """The number of our last file that the daemon has acknowledged."""
        self._folder = folder
        self._connection = connection
        self._seal = seal
        self._say = say
        self._run = ""
        self._incoming = Incoming()
        self._past: set[str] = set()
        """Ids of earlier runs of the daemon."""
        self._strange: set[str] = set()

    @property
    def last(self) -> int:
        """The number of the daemon's last file that the worker has read."""
        return self._incoming.last

    def read(self, number: int) -> Read | None:
        """Acknowledges the daemon's files up to this number; None before the first."""
        return Read(self._run, number) if self._run else None

    def fetch(self, now: float) -> list[bytes]:
        """The messages in all files present, in order. Raises OSError."""
        messages: list[bytes] = []
        by_run = self._by_run()
        for run in sorted(by_run, key=lambda each: each != self._run):  # the present one first
            if run not in self._past and run != self._run:
                self._begin(run)
            for number in sorted(by_run[run]):
                try:
                    messages += self._fetch(run, number, now)
                except OSError:
                    if not messages:
                        raise
                    return messages  # the next look brings the rest, or the error again
        return messages

    def _begin(self, run: str) -> None:
        """The daemon has restarted, and numbers its files from 1 again."""
        if self._run:
            self._past.add(self._run)
        self._run = run
        self._incoming = Incoming()

    def _by_run(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        strange: set[str] = set()
        for name in names_in(self._folder):
            parsed = parse_daemon_file(name)
            if parsed is not None:
                found.setdefault(parsed[0], []).append(parsed[1])
            elif not name.startswith("."):
                strange.add(name)
        for name in strange - self._strange:
            self._say(f"{self._folder}: {name!r} is not the daemon's: left alone")
        self._strange = strange
        return found

    def _fetch(self, run: str, number: int, now: float) -> list[bytes]:
        arrival = self._incoming.judge(number, now) if run == self._run else Arrival.PAST
        path = self._folder / daemon_file_name(run, number)
        messages: list[bytes] = []
        if arrival is Arrival.EARLY:
            return messages
        if arrival is Arrival.TAKE:
            messages = self._open(path)
            self._incoming.took(number)
        with contextlib.suppress(OSError):  # the next look finds it past and removes it
            remove_file(path)
        return messages

    def _open(self, path: Path) -> list[bytes]:
        try:
            data = read_file(path)
            if data is None:
                return []
            envelope = self._seal.open(f"out/{self._connection}/{path.name}", data)
        except (NotOursError, SealError) as error:
            self._say(f"ignored: {error}")
            return []
        if envelope.read is not None:
            self.read_by_daemon = max(self.read_by_daemon, envelope.read.number)
        return envelope.messages
