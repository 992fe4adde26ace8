"""The order of files from one writer to one reader, and a limit to how many lie unread. Pure.

The writer numbers its files from 1 and puts all that has gathered into the next one; the reader says
in its own files how far it has read. Times are monotonic seconds, passed in.
"""

from __future__ import annotations

import enum

import msgspec

UNREAD = 8
"""Files that may lie unread; what comes then waits in memory."""
TARGET = 1024 * 1024
"""Bytes after which a file is full; one message may be larger."""
MEMORY = 128 * 1024 * 1024
"""Bytes that wait in memory, at most."""
GAP = 5.0
"""Seconds to wait for a file that a shared file system shows later than the one behind it."""


class File(msgspec.Struct, frozen=True):
    """One file to be written."""

    number: int
    messages: list[bytes]
    oldest: int
    """All files before this one have been read."""
    read: int
    """The last file of the other side that was read when this one was made."""


class Outgoing:
    """What one writer has for one reader."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._in_hand: File | None = None
        self._written = 0
        self._read = 0
        self._told = 0
        """How far we have read, as the other side was last told."""

    @property
    def unread(self) -> range:
        """Numbers of the files that were written and, as far as is known, not read."""
        return range(self._read + 1, self._written + 1)

    def add(self, message: bytes) -> bool:
        """Whether there was room for it."""
        if self._bytes + len(message) > MEMORY:
            return False
        self._waiting.append(message)
        self._bytes += len(message)
        return True

    def due(self, read: int, *, all: bool = False) -> File | None:
        """The next file, again and again until it is `written`.

        Args:
            read: the last file of the other side that we have read; it is told even where there is
                nothing else to say, so that neither side waits for the other.
            all: whatever lies unread.
        """
        if self._in_hand is None:
            owed = not self._told <= read < self._told + UNREAD // 2
            if owed or (self._waiting and (all or len(self.unread) < UNREAD)):
                self._in_hand = File(self._written + 1, self._fill(), self._read + 1, read)
        return self._in_hand

    def written(self) -> None:
        """The file that was due is where the reader will find it."""
        if self._in_hand is not None:
            self._written = self._in_hand.number
            self._told = self._in_hand.read
            self._in_hand = None

    def note_read(self, number: int) -> None:
        """The reader has read up to this file."""
        self._read = max(self._read, min(number, self._written))

    def _fill(self) -> list[bytes]:
        size = count = 0
        while count < len(self._waiting) and (count == 0 or size + len(self._waiting[count]) <= TARGET):
            size += len(self._waiting[count])
            count += 1
        messages, self._waiting = self._waiting[:count], self._waiting[count:]
        self._bytes -= size
        return messages


class Verdict(enum.Enum):
    """What is to be done with a file that lies there."""

    TAKE = "take"
    PAST = "past"
    """It was taken before, or its place has been given up."""
    EARLY = "early"
    """One before it is missing: wait a little."""


class Incoming:
    """Puts the files of one writer into order: each is taken once, none before the one ahead of it."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the file taken last."""
        self._gap_since: float | None = None

    def judge(self, number: int, now: float) -> Verdict:
        """To be asked in the order of the numbers; what is to be taken is `took` before the next one."""
        if number <= self.last:
            return Verdict.PAST
        if number > self.last + 1 and not self._waited(now):
            return Verdict.EARLY
        return Verdict.TAKE

    def begin_at(self, oldest: int) -> None:
        """The writer knows that all files before this one were read, by an earlier life of the reader."""
        self.last = max(self.last, oldest - 1)

    def took(self, number: int) -> None:
        self.last = number
        self._gap_since = None

    def _waited(self, now: float) -> bool:
        if self._gap_since is None:
            self._gap_since = now
        return now - self._gap_since >= GAP
