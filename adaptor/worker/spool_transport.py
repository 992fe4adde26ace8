"""The way to the daemon through a mailbox (see `adaptor.protocol.spool`): files in a shared folder."""

from __future__ import annotations

import contextlib
import math
import secrets
import select
import time
from pathlib import Path

from adaptor.protocol.access import Access
from adaptor.protocol.spool.files import remove_file, remove_folder, write_file
from adaptor.protocol.spool.flow import Outgoing
from adaptor.protocol.spool.layout import LATENCY, Box, inbox, letter_name, outbox, room_at
from adaptor.protocol.spool.pace import QUICKEST, Pace
from adaptor.protocol.spool.seal import Envelope, Seal
from adaptor.worker.answers import Answers
from adaptor.worker.transport import Say, TransportError


class MailboxWay:
    """See `Way`. Each connection gets a box of its own: what was meant for the last one is not read."""

    patience = 3 * LATENCY

    def __init__(self, identity: str, wakeup: int, say: Say) -> None:
        """`identity`: begins with the pilot's number and a dash."""
        self._identity = identity
        self._wakeup = wakeup
        self._say = say
        self._pilot = int(identity.partition("-")[0])
        self._token = secrets.token_hex(4)
        self._connections = 0

    def connect(self, access: Access, address: str) -> MailboxTransport:
        """Raises TransportError: there is no such mailbox."""
        self._connections += 1
        box = Box(self._pilot, self._token, self._connections).name
        try:
            room = room_at(address)
            outbox(room, box).mkdir(mode=0o700)
        except (OSError, ValueError) as error:
            raise TransportError(f"{address}: {error}") from error
        return MailboxTransport(room, box, self._identity, Seal(access.secret_key), self._wakeup, self._say)

    def end(self) -> None:
        """There is nothing to let go of."""


class MailboxTransport:
    """See `Transport`. Times are monotonic seconds."""

    def __init__(self, room: Path, box: str, worker: str, seal: Seal, wakeup: int, say: Say) -> None:
        self.problem = ""
        self._room = room
        self._box = box
        self._worker = worker
        self._seal = seal
        self._outgoing = Outgoing()
        self._answers = Answers(outbox(room, box), box, seal, say)
        self._pace = Pace()
        self._next_look = self._next_file = time.monotonic()
        self._poll = select.poll()
        self._poll.register(wakeup, select.POLLIN)

    def send(self, data: bytes) -> bool:
        now = time.monotonic()
        self._pace.hurry()
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
        else:  # the daemon is to hear nothing of a connection that was given up
            for number in self._outgoing.unread:
                with contextlib.suppress(OSError):
                    remove_file(inbox(self._room) / letter_name(self._box, number))
        remove_folder(outbox(self._room, self._box))

    def _due(self, until: float) -> float:
        """When there is something to do."""
        dues = [until, self._next_look]
        if self._outgoing.due(self._answers.last) is not None:
            dues.append(self._next_file)
        return min(dues)

    def _look(self, now: float) -> list[bytes]:
        """Fetch what is there."""
        try:
            messages = self._answers.fetch(now)
        except OSError as error:
            self.problem = f"{self._room}: {error.strerror or error}"
            messages = []
        if messages:
            self._pace.hurry()
            self.problem = ""
        else:
            self._pace.tire()
        self._outgoing.note_read(self._answers.read_by_daemon)
        self._next_look = time.monotonic() + self._pace.pause
        return messages

    def _write(self, now: float, *, all: bool = False) -> bool:
        """Whether the next file's time has come and it is written; if it cannot be, it is tried again."""
        file = self._outgoing.due(self._answers.last, all=all)
        if file is None or (now < self._next_file and not all):
            return False
        self._next_file = now + QUICKEST
        name = letter_name(self._box, file.number)
        envelope = Envelope(self._worker, file.messages, file.oldest, self._answers.read(file.read))
        data = self._seal.close(f"in/{name}", envelope)
        try:
            write_file(inbox(self._room) / name, data)
        except OSError as error:
            self.problem = f"{self._room}: {error.strerror or error}"
            self._next_file = now + self._pace.slowest
            return False
        self._outgoing.written()
        return True
