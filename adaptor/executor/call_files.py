"""Calls and results that are too long for the link: private files in the bag's output folder."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path

from adaptor.atomic_file import PRIVATE, write_atomically

_PATIENCE = 5.0
"""Seconds until a file that another node has written is seen: file servers let clients remember for a moment
that a file is missing."""
_PAUSE = 0.1


def write(folder: Path, name: str, data: bytes) -> None:
    """Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(folder / name, data, temporary=folder / f".{name}", mode=PRIVATE, sync=False)


def take(folder: Path, name: str) -> bytes:
    """The content of a file, which is removed. Raises OSError: it is not there, or not ours."""
    path = folder / name
    handle = _open(path)
    with open(handle, "rb") as file:  # noqa: PTH123 (a descriptor)
        status = os.fstat(handle)
        if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "not a file of this user's", str(path))
        data = file.read()
    remove(folder, name)
    return data


def remove(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """If nothing is left in it."""
    try:
        folder.rmdir()
    except OSError:
        return


def _open(path: Path) -> int:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE)
