"""The copies of bundles in one folder of a node, shared by all workers of this user there.

Each copy has a file that its users lock. A worker that makes or removes a copy holds the lock alone; those
that use it share it. The kernel drops the locks of dead workers, so the next one removes their copies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import IO

from adaptor.bag_spec import Bundle
from adaptor.bundles.environments import Relocation, relocation_of
from adaptor.bundles.unpacking import remove, unpack

_LOCK, _NEW, _OLD = ".lock", ".new", ".old"
_LETTERS = 24  # of a digest in a name: interpreter lines of scripts have to be short
_PAUSE = 0.01  # seconds until the next look, where others look at the same time
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Copy:
    """A copy that this worker uses."""

    def __init__(self, folder: str, name: str, lock: int, relocation: Relocation) -> None:
        self.relocation = relocation
        self._folder = folder
        self._name = name
        self._lock = lock

    def release(self) -> None:
        """Use it no longer; the last user removes it."""
        os.close(self._lock)
        _remove_unused(self._folder, self._name)


def copy_of(bundle: Bundle, archive: IO[bytes], folder: str) -> tuple[Copy, bool]:
    """The copy of a bundle in a private folder of this user's, and whether it was made now.

    Waits for another worker that makes it.

    Raises:
        DamagedBundleError: the archive is not that of the bundle.
        OSError: the disk is full, or broken.
    """
    remove_unused(folder)
    name = bundle.digest[:_LETTERS]
    root = f"{folder}/{name}"
    relocation, made = relocation_of(bundle, root), False
    while True:
        lock = os.open(f"{root}{_LOCK}", _OPEN, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            missing = _is_current(lock, f"{root}{_LOCK}") and not _is_there(root)
            if missing and _alone(lock):  # for a moment it had no lock, so look again
                if _is_current(lock, f"{root}{_LOCK}") and not _is_there(root):
                    _make(bundle, archive, root, relocation)
                    made = True
                fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_current(lock, f"{root}{_LOCK}") and _is_there(root):
                return Copy(folder, name, lock, relocation), made
        except BaseException:
            os.close(lock)
            _remove_unused(folder, name)
            raise
        os.close(lock)
        time.sleep(_PAUSE)


def _alone(lock: int) -> bool:
    """Take a lock alone. False: others share it, who may use a copy for hours; it is lost then."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(bundle: Bundle, archive: IO[bytes], root: str, relocation: Relocation) -> None:
    remove(f"{root}{_NEW}")
    archive.seek(0)
    try:
        unpack(archive, bundle, f"{root}{_NEW}", relocation)
    except BaseException:
        remove(f"{root}{_NEW}")
        raise
    os.rename(f"{root}{_NEW}", root)  # noqa: PTH104


def remove_unused(folder: str) -> None:
    """Remove the copies, and the parts of copies, that no living worker uses."""
    with contextlib.suppress(OSError):
        for found in os.listdir(folder):  # noqa: PTH208
            if found.endswith(_LOCK):
                _remove_unused(folder, found.removesuffix(_LOCK))


def _remove_unused(folder: str, name: str) -> None:
    """Remove a copy that no worker uses."""
    root = f"{folder}/{name}"
    try:
        lock = os.open(f"{root}{_LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_current(lock, f"{root}{_LOCK}"):
            return
        for part in (f"{root}{_OLD}", f"{root}{_NEW}"):
            remove(part)
        with contextlib.suppress(FileNotFoundError):
            os.rename(root, f"{root}{_OLD}")  # noqa: PTH104 (a part of a copy never has its name)
        remove(f"{root}{_OLD}")
        if not os.path.lexists(f"{root}{_OLD}"):
            os.unlink(f"{root}{_LOCK}")  # noqa: PTH108
    except OSError:
        return
    finally:
        os.close(lock)


def _is_there(root: str) -> bool:
    return os.path.isdir(root)  # noqa: PTH112


def _is_current(lock: int, path: str) -> bool:
    """Whether the lock's file still has its name: who removes a copy removes its lock."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(status, os.fstat(lock))
