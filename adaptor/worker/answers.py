"""What the daemon has written into a worker's box: read in order, checked, and taken away."""

from __future__ import annotations

import contextlib
from pathlib import Path

from adaptor.protocol.spool.files import NotOursError, names_in, read_file, remove_file
from adaptor.protocol.spool.flow import Incoming, Verdict
from adaptor.protocol.spool.layout import answer_name, parse_answer
from adaptor.protocol.spool.seal import Read, Seal, SealError
from adaptor.worker.transport import Say


class Answers:
    """One box. Times are monotonic seconds."""

    def __init__(self, folder: Path, box: str, seal: Seal, say: Say) -> None:
        self.read_by_daemon = 0
        """The number of our last file that the daemon says it has read."""
        self._folder = folder
        self._box = box
        self._seal = seal
        self._say = say
        self._life = ""
        self._incoming = Incoming()
        self._past: set[str] = set()
        """Earlier lives of the daemon."""
        self._strange: set[str] = set()

    @property
    def last(self) -> int:
        """The number of the daemon's last file that was read."""
        return self._incoming.last

    def read(self, number: int) -> Read | None:
        """That its files up to this one were read; None while there are none."""
        return Read(self._life, number) if self._life else None

    def fetch(self, now: float) -> list[bytes]:
        """The messages that are there, in order. Raises OSError."""
        messages: list[bytes] = []
        by_life = self._by_life()
        for life in sorted(by_life, key=lambda each: each != self._life):  # the present one first
            if life not in self._past and life != self._life:
                self._begin(life)
            for number in sorted(by_life[life]):
                try:
                    messages += self._fetch(life, number, now)
                except OSError:
                    if not messages:
                        raise
                    return messages  # the rest, or the error again, comes with the next look
        return messages

    def _begin(self, life: str) -> None:
        """The daemon was restarted: its numbers begin anew."""
        if self._life:
            self._past.add(self._life)
        self._life = life
        self._incoming = Incoming()

    def _by_life(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        strange: set[str] = set()
        for name in names_in(self._folder):
            parsed = parse_answer(name)
            if parsed is not None:
                found.setdefault(parsed[0], []).append(parsed[1])
            elif not name.startswith("."):
                strange.add(name)
        for name in strange - self._strange:
            self._say(f"{self._folder}: {name!r} is not the daemon's: left alone")
        self._strange = strange
        return found

    def _fetch(self, life: str, number: int, now: float) -> list[bytes]:
        verdict = self._incoming.judge(number, now) if life == self._life else Verdict.PAST
        path = self._folder / answer_name(life, number)
        messages: list[bytes] = []
        if verdict is Verdict.EARLY:
            return messages
        if verdict is Verdict.TAKE:
            messages = self._open(path)
            self._incoming.took(number)
        with contextlib.suppress(OSError):  # it is past now, and removed with the next look
            remove_file(path)
        return messages

    def _open(self, path: Path) -> list[bytes]:
        try:
            data = read_file(path)
            if data is None:
                return []
            envelope = self._seal.open(f"out/{self._box}/{path.name}", data)
        except (NotOursError, SealError) as error:
            self._say(f"passed over: {error}")
            return []
        if envelope.read is not None:
            self.read_by_daemon = max(self.read_by_daemon, envelope.read.number)
        return envelope.messages
