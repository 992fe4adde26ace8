"""Private files and folders: written in one step, and opened only if they are this user's.

Where other users may write, they can know the name of a file before it is there and put a link, a second name
of another file, or a fifo in its place. So nothing here follows a link of another user, waits for the
writer of a fifo, or empties a file that has a second name.

What cannot import this is apart: `worker.calls.server` is sent to other interpreters.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path

PRIVATE = 0o600
_OTHERS = 0o077
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_EXISTING = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
_MOST_LINKS = 8
_TRUSTED_LINKS = (0,)  # whose links are followed besides one's own: root's, who could do anything anyway


class NotOursError(OSError):
    """A path that is not this user's, or not what it should be; `strerror` says why."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)


def write_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a 0600 file, private from its first byte. Raises OSError.

    Args:
        sync: whether a crash of the machine leaves it whole, too.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    write_atomically(path, data, temporary=temporary, mode=PRIVATE, sync=sync)


def write_atomically(
    path: Path | str,
    data: bytes,
    *,
    temporary: Path | str,
    mode: int | None = None,
    sync: bool = False,
    folder: int | None = None,
    replace: bool = True,
) -> None:
    """Write a file in one step: a reader sees the old content or the new one, never a part.

    Args:
        temporary: in the same folder, and no other writer's at the same time. What an earlier writer left
            there is removed: it may be open to others, so nothing is ever written into it.
        mode: of the file; None: what the umask leaves of 0666.
        sync: whether the data are on the disk before the file gets its name.
        folder: the open folder that both names are relative to.
        replace: whether the file may replace one that is there.

    Raises:
        FileExistsError: it is there and must not be replaced.
        OSError: the file keeps its old content, and the temporary one is gone if it can be removed.
    """
    _remove(temporary, folder)
    handle = os.open(temporary, _NEW, 0o666 if mode is None else mode & 0o700, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if mode is not None and mode & _OTHERS:
                os.fchmod(handle, mode)
            if sync:
                file.flush()
                os.fsync(handle)
        if replace:
            os.rename(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
        else:  # unlike a rename, a link never replaces what is there
            os.link(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
            _remove(temporary, folder)
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(temporary, folder)
        raise


def _remove(path: Path | str, folder: int | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path, dir_fd=folder)


def open_log(path: Path | str) -> int:
    """A 0600 file to append to, made if missing. Raises OSError: it is a link, or cannot be written."""
    return os.open(path, _LOG, PRIVATE)


def open_ours(
    path: Path | str,
    *,
    folder: int | None = None,
    links: bool = False,
    closed: bool = False,
    owner: int | None = None,
) -> int:
    """A plain file of this user's for reading.

    Args:
        folder: the open folder that the path is relative to.
        links: whether it may be a link, of any user.
        closed: whether its mode must keep other users out.
        owner: the user whose file it must be instead.

    Raises:
        NotOursError: it is something else.
        OSError: it is not there, or cannot be read.
    """
    try:
        handle = os.open(path, _READ if links else _READ | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise _explained(error) from error
    try:
        status = os.fstat(handle)
        _check_file(status, os.geteuid() if owner is None else owner)
        if closed and status.st_mode & _OTHERS:
            raise NotOursError(f"it is open to other users; close it with: chmod 600 {path}")
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_folder(path: str, *, ours: bool) -> int:
    """A descriptor of a folder, for `dir_fd`.

    Args:
        path: absolute. Its last part may be a link of this user's or of root's.
        ours: whether the folder must belong to this user.

    Raises:
        NotOursError: it is another user's, or another user's link leads to it.
        OSError: it is not there, or is no folder.
    """
    for _ in range(_MOST_LINKS):
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            status = os.fstat(handle)
            if not stat.S_ISLNK(status.st_mode):
                if not stat.S_ISDIR(status.st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                if ours and status.st_uid != os.geteuid():
                    raise NotOursError(f"it belongs to user {status.st_uid}")
                return handle
            if status.st_uid not in (os.geteuid(), *_TRUSTED_LINKS):
                raise NotOursError(f"it is a link that user {status.st_uid} has made")
            path = os.path.join(os.path.dirname(path), os.readlink("", dir_fd=handle))  # noqa: PTH118, PTH120
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def open_output(name: str, folder: int, *, append: bool = False, empty: bool = True) -> int:
    """A file for writing in an open folder.

    Args:
        append: whether each write goes behind what the file holds by then, as of several writers.
        empty: whether to drop what the file holds now.

    Raises:
        NotOursError: what has this name is no plain file of this user's with one name.
        OSError: it cannot be made or written.
    """
    behind = os.O_APPEND if append else 0
    with contextlib.suppress(FileExistsError):
        return os.open(name, _NEW | behind, 0o666, dir_fd=folder)
    try:
        handle = os.open(name, _EXISTING | behind, dir_fd=folder)
    except OSError as error:
        raise _explained(error) from error
    try:
        status = os.fstat(handle)
        _check_file(status, os.geteuid())
        if status.st_nlink > 1:
            raise NotOursError("it is a second name of another file (a hard link)")
        if empty:
            os.ftruncate(handle, 0)
        os.set_blocking(handle, True)  # the task gets it as it always was
    except BaseException:
        os.close(handle)
        raise
    return handle


def _explained(error: OSError) -> OSError:
    if error.errno == errno.ELOOP:
        return NotOursError("it is a link")
    if error.errno == errno.ENXIO:  # a fifo without a reader, or a socket
        return NotOursError("it is no plain file")
    return error


def _check_file(status: os.stat_result, owner: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotOursError("it is no plain file")
    if status.st_uid != owner:
        raise NotOursError(f"it belongs to user {status.st_uid}")
