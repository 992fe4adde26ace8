"""Files in folders of a shared file system: written in one step, read only if a plain file of ours.

Made for NFS as it is usually mounted: a listing may be out of date by the run of an attribute cache
(30 s and more), no other machine's clock is asked, a file may vanish between listing and opening
(ESTALE), and a rename whose answer was lost may be reported as failed although it was done.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

from adaptor.atomic_file import PRIVATE, write_atomically
from adaptor.errors import AdaptorError
from adaptor.protocol.spool.layout import LARGEST

_GONE = frozenset({errno.ENOENT, errno.ESTALE})


class NotOursError(AdaptorError):
    """Neither the daemon nor a worker can have written this file."""


def write_file(path: Path, data: bytes) -> None:
    """Write a 0600 file in one step; repeating it does no harm. Raises OSError.

    No fsync: the sender repeats what a crash of the machine loses.
    """
    # The sweep knows this name; each file has one writer.
    write_atomically(path, data, temporary=path.with_name(f".{path.name}"), mode=PRIVATE, sync=False)


def names_in(folder: Path) -> list[str]:
    """The names in a folder as of now. Raises OSError.

    Setting the mode that the folder has anyway goes past every cache: the file server's reply carries the
    folder's present state, and the client drops an outdated listing.
    """
    folder.chmod(0o700)
    return [path.name for path in folder.iterdir()]


def read_file(path: Path) -> bytes | None:
    """The content; None: it is gone.

    Raises:
        NotOursError: it is a link, no plain file, too large, or another user's.
        OSError: it cannot be read now.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            _check(path, os.fstat(handle))
            with os.fdopen(handle, "rb", closefd=False) as file:
                return file.read(LARGEST)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in _GONE:
            return None
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise NotOursError(f"{path}: not a plain file of ours") from error
        raise


def _check(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        raise NotOursError(f"{path}: not a plain file of ours")
    if status.st_size > LARGEST:
        raise NotOursError(f"{path}: {status.st_size} bytes; ours have at most {LARGEST}")


def remove_file(path: Path) -> None:
    """Raises OSError: it is there and stays there."""
    try:
        path.unlink()
    except OSError as error:
        if error.errno not in _GONE:
            raise


def remove_folder(path: Path) -> None:
    """With all that is in it, as far as that can be done."""
    shutil.rmtree(path, ignore_errors=True)
