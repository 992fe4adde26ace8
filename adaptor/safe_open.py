"""Opens folders and output files so that nobody can lead what is written there elsewhere.

Where other users may write, they can know the name of a file before it is there and put a link, a second name
of another file, or a fifo in its place. An output file is therefore opened from its open folder, never
through a link, never waiting for a reader, and it is emptied only when it is a plain file of this user's
with one name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

_EXISTING = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_MOST_LINKS = 8
_TRUSTED_LINKS = (0,)
"""Whose links are followed besides one's own: root's, who could do anything anyway."""


class NotOursError(OSError):
    """What is there is not what a worker made; `strerror` says why."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)


def open_folder(path: str, *, ours: bool) -> int:
    """A descriptor of a folder, for `dir_fd`.

    Args:
        path: absolute. Its last part may be a link of this user's or of root's.
        ours: whether the folder must belong to this user.

    Raises:
        NotOursError: it is a stranger's, or a stranger's link leads to it.
        OSError: it is not there, or is no folder.
    """
    for _ in range(_MOST_LINKS):
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            status = os.fstat(handle)
            if not stat.S_ISLNK(status.st_mode):
                _check_folder(status, ours=ours)
                return handle
            path = os.path.join(os.path.dirname(path), _target(handle, status))  # noqa: PTH118, PTH120
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _target(link: int, status: os.stat_result) -> str:
    if status.st_uid not in (os.geteuid(), *_TRUSTED_LINKS):
        raise NotOursError(f"it is a link that user {status.st_uid} has made")
    return os.readlink("", dir_fd=link)


def _check_folder(status: os.stat_result, *, ours: bool) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if ours and status.st_uid != os.geteuid():
        raise NotOursError(f"it belongs to user {status.st_uid}")


def open_output(name: str, folder: int, *, append: bool = False) -> int:
    """A file for writing in an open folder, empty unless `append`.

    Args:
        append: whether to keep what the file holds, and to write behind it.

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
        _check(os.fstat(handle))
        if not append:
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


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotOursError("it is no plain file")
    if status.st_uid != os.geteuid():
        raise NotOursError(f"it belongs to user {status.st_uid}")
    if status.st_nlink > 1:
        raise NotOursError("it is a second name of another file (a hard link)")
