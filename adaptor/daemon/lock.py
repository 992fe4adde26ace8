"""One daemon per state directory, and who it is.

The lock is one of the kernel's. On some shared file systems it does not reach other machines: NFS with
`nolock` or `local_lock`, Lustre with `localflock`. So the file has a heartbeat too, its time of change: no
daemon starts while that of a daemon on another machine goes on.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import signal
import struct
import threading
import time
from pathlib import Path
from typing import IO

import msgspec

from adaptor.daemon.clock import system_clock
from adaptor.daemon.ground.threads import NO_THREAD
from adaptor.errors import AdaptorError
from adaptor.processes.identity import (
    Process,
    boot,
    host,
    is_here,
    own_identity,
    process_of,
    start_ticks,
    state_of,
)
from adaptor.protocol.decoding import decoded

log = logging.getLogger(__name__)

LOCK = "daemon.lock"
_HELD = frozenset({errno.EAGAIN, errno.EACCES})
_QUESTION = struct.Struct("@hhqqi")  # struct flock of fcntl(2): type, whence, start, length, pid
HEARTBEAT = 10.0  # seconds between two heartbeats
SILENCE = 35.0  # seconds without a heartbeat after which a daemon on another machine has ended
_LOOK = 1.0
_LONGEST = 4096  # bytes of a holder's name, at most
_JUST_TAKEN = 1.0  # seconds that a daemon takes, at most, from having the lock to having its name in it


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
        """The holder, if it runs on this machine; None: it runs elsewhere, or has ended."""
        if not is_here({"host": self.host, "boot": self.boot, "pid": self.pid, "ticks": self.ticks}):
            return None
        found = process_of(self.pid)
        return found if found is not None and found.ticks == self.ticks else None


_holder = msgspec.json.Decoder(Holder)


class LockHeldError(AdaptorError):
    """Another process holds the lock of the state directory."""


class DaemonLock:
    """The lock, until it is closed; the kernel releases it with the process.

    The process must not open and close the file otherwise: that would release it too.
    """

    def __init__(self, path: Path, file: IO[bytes], before: float | None = None) -> None:
        """`before`: as the attribute."""
        self.before = before
        """Epoch seconds of the last sign of life of the daemon before this one; None: there was none."""
        self._path = path
        self._file = file
        self._beat = path.stat().st_mtime_ns  # the last heartbeat, as the file system has it
        self._lost = False  # whether another daemon has taken the file over
        self._closing = threading.Event()
        self._beats = threading.Thread(target=self._go_on, daemon=True, name="heartbeat")
        self._beats.start()  # may raise RuntimeError

    def __enter__(self) -> DaemonLock:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release it, so that the next daemon need not wait for a heartbeat."""
        self._closing.set()
        self._beats.join()
        if not self._lost:
            with contextlib.suppress(OSError):
                self._file.truncate(0)
        self._file.close()

    def displaced(self) -> str:
        """Why the state directory is not this daemon's any more; empty: it is.

        Raises OSError: the file cannot be looked at now.
        """
        try:
            found = self._path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return "its lock or the whole folder was removed"
        own = os.fstat(self._file.fileno())
        if (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino):
            return "its lock is not that of this daemon: the folder or the lock was replaced"
        return ""

    def beat(self) -> None:
        """Show that this process lives, or end it if another daemon has shown that. Raises OSError."""
        if self._path.stat().st_mtime_ns != self._beat and self._names_another():
            self._lost = True
            log.error("another daemon has taken over %s: stopping", self._path.parent)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        os.utime(self._file.fileno())
        self._beat = self._path.stat().st_mtime_ns

    def _names_another(self) -> bool:
        data = os.pread(self._file.fileno(), _LONGEST, 0)
        try:
            return decoded(_holder.decode, data) != Holder(**own_identity())
        except msgspec.DecodeError:
            return False

    def _go_on(self) -> None:
        while not self._lost and not self._closing.wait(HEARTBEAT):
            with contextlib.suppress(OSError):  # the folder is gone, or its file system does not answer
                self.beat()


def take_lock(directory: Path) -> DaemonLock:
    """The lock of a state directory.

    Waits up to `SILENCE` seconds if a daemon on another machine has not released it.

    Raises:
        LockHeldError: another daemon holds it.
        AdaptorError: the file cannot be made or locked.
    """
    path = directory / LOCK
    another_was_here = path.exists()
    try:
        file = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b", 0
        )
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        _await_silence(path)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before = os.fstat(file.fileno()).st_mtime if another_was_here else None
        file.truncate(0)
        file.write(msgspec.json.encode(own_identity()))
        os.fsync(file.fileno())
        return DaemonLock(path, file, before)
    except LockHeldError:
        file.close()
        raise
    except RuntimeError as error:
        file.close()
        raise AdaptorError(f"no heartbeat of the daemon can begin: {NO_THREAD}") from error
    except OSError as error:
        file.close()
        if error.errno not in _HELD:
            raise AdaptorError(f"{path}: cannot be locked and written: {error.strerror}") from error
        raise _held(directory, holder_of(directory)) from error


def _held(directory: Path, holder: Holder | None) -> LockHeldError:
    who = holder or "a process that is just ending"
    return LockHeldError(f"{directory}: a daemon runs here already ({who}); `adaptor daemon stop` ends it")


def _await_silence(path: Path) -> None:
    """Return when no daemon of another machine shows a heartbeat. Raises LockHeldError: one does."""
    first, beat = _seen(path)
    until = time.monotonic() + SILENCE
    while first is not None and not first.local and time.monotonic() < until:
        time.sleep(_LOOK)
        now, last = _seen(path)
        if now is None or now.local:
            return
        if last != beat:
            raise _held(path.parent, now)


def _seen(path: Path) -> tuple[Holder | None, int]:
    """The process that the file names, and its last heartbeat in nanoseconds.

    The file is opened again: its server then tells what is new.
    """
    with path.open("rb") as file:
        try:
            return decoded(_holder.decode, file.read()), os.fstat(file.fileno()).st_mtime_ns
        except msgspec.DecodeError:
            return None, 0


def holder_of(directory: Path) -> Holder | None:
    """The process that holds the lock, if any. Raises AdaptorError: the file cannot be read."""
    path = directory / LOCK
    try:
        with path.open("rb") as file:
            if (found := _holder_of(file)) is not None:
                return found
        named, beat = _seen(path)
        lately = abs(system_clock() - beat / 1e9) < SILENCE
        return named if named is not None and not named.local and lately else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be read: {error.strerror}") from error


def _holder_of(file: IO[bytes]) -> Holder | None:
    """Asking does not take the lock, so a daemon that starts at this moment is not turned away.

    The kernel names the holder, whatever the file says: a daemon of another version may write it in another
    way. Of a process that the kernel cannot name, on another machine, the file says which it is.
    """
    until = time.monotonic() + _JUST_TAKEN
    while True:
        question = _QUESTION.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _QUESTION.unpack(fcntl.fcntl(file, fcntl.F_GETLK, question))
        if kind == fcntl.F_UNLCK:
            return None
        if pid > 0 and (ticks := start_ticks(pid)) is not None and _has_locked(pid, file):
            return Holder(host(), boot(), pid, ticks)
        file.seek(0)
        try:
            return decoded(_holder.decode, file.read())
        except msgspec.DecodeError:
            if time.monotonic() > until:
                return Holder("", "", pid, 0)
        time.sleep(0.02)


def _has_locked(pid: int, file: IO[bytes]) -> bool:
    """Whether the kernel of this machine has a lock of this process on the file: one of the kernels that name
    processes of other machines, too, might mean another process."""
    inode = os.fstat(file.fileno()).st_ino
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()  # proc(5): number, kind, mode, type, process, device:inode, start, end
            if fields[4:5] == [str(pid)] and fields[5].rpartition(":")[2] == str(inode):
                return True
    return False
