"""Flow control from one writer to one reader: the order of files, and a limit of unread ones. Pure.

The writer numbers its files from 1 and puts all waiting messages into the next one; the reader says in
its own files how far it has read. Times are monotonic seconds, passed in.
"""

from __future__ import annotations

import enum

import msgspec

UNREAD = 8
"""Files that may be unread at a time; further messages wait in memory."""
TARGET = 1024 * 1024
"""Bytes after which a file is full; one message may be larger."""
MEMORY = 128 * 1024 * 1024
"""Bytes of the messages that wait in memory, at most."""
GAP = 5.0
"""Seconds to wait for a missing file: a shared file system may show it later than its successor."""


class File(msgspec.Struct, frozen=True):
    """One file to write."""

    number: int
    messages: list[bytes]
    oldest: int
    """All files before this one have been read."""
    read: int
    """The last file of the other side that the writer had read when it made this one."""


class Outgoing:
    """The messages of one writer to one reader."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._next: File | None = None
        self._written = 0
        self._read = 0
        self._acknowledged = 0
        """The last file of the other side that our last file acknowledged."""

    @property
    def unread(self) -> range:
        """Numbers of the files that are written and not acknowledged."""
        return range(self._read + 1, self._written + 1)

    def add(self, message: bytes) -> bool:
        """Returns False if the memory for waiting messages is full."""
        if self._bytes + len(message) > MEMORY:
            return False
        self._waiting.append(message)
        self._bytes += len(message)
        return True

    def due(self, read: int, *, all: bool = False) -> File | None:
        """The next file to write; the same one until `written` is called.

        Args:
            read: the last file of the other side that we have read. A file may be due for this number
                alone, so that neither side waits for the other.
            all: ignore the limit of unread files.
        """
        if self._next is None:
            owed = not self._acknowledged <= read < self._acknowledged + UNREAD // 2
            if owed or (self._waiting and (all or len(self.unread) < UNREAD)):
                self._next = File(self._written + 1, self._fill(), self._read + 1, read)
        return self._next

    def written(self) -> None:
        """The file that was due is in place."""
        if self._next is not None:
            self._written = self._next.number
            self._acknowledged = self._next.read
            self._next = None

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


class Arrival(enum.Enum):
    """What the reader does with a file that it finds."""

    TAKE = "take"
    PAST = "past"
    """It was taken before, or the reader no longer waits for it: remove it."""
    EARLY = "early"
    """An earlier one is missing: wait up to GAP."""


class Incoming:
    """Puts the files of one writer into order: takes each once, and none before its predecessor."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the file taken last."""
        self._gap_since: float | None = None

    def judge(self, number: int, now: float) -> Arrival:
        """Call it in the order of the numbers, and `took` after each file that is taken."""
        if number <= self.last:
            return Arrival.PAST
        if number > self.last + 1 and not self._waited(now):
            return Arrival.EARLY
        return Arrival.TAKE

    def begin_at(self, oldest: int) -> None:
        """An earlier run of the reader has read all files before this one, as the writer knows."""
        self.last = max(self.last, oldest - 1)

    def took(self, number: int) -> None:
        self.last = number
        self._gap_since = None

    def _waited(self, now: float) -> bool:
        if self._gap_since is None:
            self._gap_since = now
        return now - self._gap_since >= GAP
