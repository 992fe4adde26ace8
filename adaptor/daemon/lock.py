"""One daemon per state directory, and who it is."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from pathlib import Path
from typing import IO

import msgspec

from adaptor.errors import AdaptorError
from adaptor.processes.identity import Process, host, is_here, own_identity, process_of, state_of
from adaptor.protocol.decoding import decoded

LOCK = "daemon.lock"
_HELD = frozenset({errno.EAGAIN, errno.EACCES})
_QUESTION = struct.Struct("@hhqqi")
"""struct flock of fcntl(2): type, whence, start, length, pid."""
_JUST_TAKEN = 1.0
"""Seconds that a daemon takes, at most, from having the lock to having its name in it."""


class Holder(msgspec.Struct, frozen=True):
    """The process that holds the lock; see `adaptor.processes.identity.Identity`."""

    host: str
    boot: str
    pid: int
    ticks: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host or 'an unknown host'}"

    @property
    def local(self) -> bool:
        """Whether it is on this machine."""
        return self.host == host()

    @property
    def busy(self) -> bool:
        """Whether it lives on this machine and is not stopped, so that it may still answer."""
        return self.process() is not None and state_of(self.pid) not in (b"", b"T", b"t", b"Z", b"X")

    def process(self) -> Process | None:
        """That very process of this machine; None: it is not here, or has ended."""
        if not is_here({"host": self.host, "boot": self.boot, "pid": self.pid, "ticks": self.ticks}):
            return None
        found = process_of(self.pid)
        return found if found is not None and found.ticks == self.ticks else None


_holder = msgspec.json.Decoder(Holder)


class LockHeldError(AdaptorError):
    """Another process holds the lock of the state directory."""


def take_lock(directory: Path) -> IO[bytes]:
    """The lock, for as long as the returned file is open; the kernel releases it with the process.

    Raises:
        LockHeldError: another daemon holds it.
        AdaptorError: the file cannot be made or locked.
    """
    path = directory / LOCK
    try:
        file = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b", 0
        )
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(msgspec.json.encode(own_identity()))
    except OSError as error:
        file.close()
        if error.errno not in _HELD:
            raise AdaptorError(f"{path}: cannot be locked and written: {error.strerror}") from error
        who = holder_of(directory) or "a process that is just ending"
        raise LockHeldError(
            f"{directory}: a daemon runs here already ({who}); `adaptor daemon stop` ends it"
        ) from error
    return file


def holder_of(directory: Path) -> Holder | None:
    """The process that holds the lock, if any. Raises AdaptorError: the file cannot be read."""
    path = directory / LOCK
    try:
        with path.open("rb") as file:
            return _holder_of(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be read: {error.strerror}") from error


def _holder_of(file: IO[bytes]) -> Holder | None:
    """Asking does not take the lock, so a daemon that starts at this moment is not turned away."""
    until = time.monotonic() + _JUST_TAKEN
    while True:
        question = _QUESTION.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _QUESTION.unpack(fcntl.fcntl(file, fcntl.F_GETLK, question))
        if kind == fcntl.F_UNLCK:
            return None
        file.seek(0)
        try:
            return decoded(_holder.decode, file.read())
        except msgspec.DecodeError:
            if time.monotonic() > until:
                return Holder("", "", pid, 0)
        time.sleep(0.02)
