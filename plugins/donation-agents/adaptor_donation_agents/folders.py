"""The folders of a node: one of each user who uses it, held open, and the runtime folder that holds them.

No user of a node is trusted: the code follows no link, and does not use a folder into which another user
could put something. Files are small, and written whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from adaptor.private_files import open_ours, write_atomically
from adaptor.processes.notes import parse_note

ROOT = 0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = "{0}: other users may write to it; close it with: chmod go-w {0}"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_LARGEST = 65536
_Folder = TypeVar("_Folder", bound="OpenFolder")


class OpenFolder:
    """All access goes through the open folder, so that no rename in the meantime leads elsewhere."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __enter__(self: _Folder) -> _Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)


class UserFolder(OpenFolder):
    def __init__(self, handle: int, uid: int) -> None:
        """`handle`: of the folder, which belongs to user `uid` alone."""
        super().__init__(handle)
        self._uid = uid

    def names(self) -> list[str]:
        return os.listdir(self._handle)  # noqa: PTH208  (an open folder has no path)

    def has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except OSError:
            return False
        return True

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a record; None: there is no such file. Raises ValueError: it is damaged, or no file of this
        user."""
        try:
            handle = open_ours(name, folder=self._handle, owner=self._uid)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(f"{name}: {error.strerror}") from error
        try:
            content = parse_note(os.read(handle, _LARGEST))
        except OSError as error:
            raise ValueError(f"{name}: {error}") from error
        finally:
            os.close(handle)
        if not isinstance(content, dict):
            raise ValueError(f"{name}: holds no record")
        return content

    def write(self, name: str, content: dict[str, Any], mode: int = 0o600) -> None:
        """Raises OSError."""
        data, temporary = json.dumps(content).encode(), f".{name}.{os.getpid()}"
        write_atomically(name, data, temporary=temporary, mode=mode, folder=self._handle)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._handle)

    def lock(self, name: str) -> int | None:
        """Take a lock, held until the returned descriptor is closed; None: another process holds it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(name, flags, 0o600, dir_fd=self._handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle


class UnsafeError(Exception):
    """A folder that cannot be trusted; the message says why, and what to do."""


class RuntimeFolder(OpenFolder):
    @property
    def is_roots(self) -> bool:
        """True if root alone can put something into it."""
        status = os.fstat(self._handle)
        return status.st_uid == ROOT and not status.st_mode & _OTHERS_WRITE

    def users(self) -> list[int]:
        """The users that may have a folder there: its owner only, or all users if that is root."""
        maker = os.fstat(self._handle).st_uid
        if maker != ROOT:
            return [maker]  # no other user relies on it, and it may hold any number of names
        names = os.listdir(self._handle)  # noqa: PTH208  (an open folder has no path)
        return [int(name) for name in names if name.isdigit() and len(name) < 11]

    def user_folder(self, uid: int) -> UserFolder | None:
        """A user's folder; None: there is none that is this user's alone."""
        try:
            handle = os.open(str(uid), _FOLDER, dir_fd=self._handle)
        except OSError:
            return None
        status = os.fstat(handle)
        if status.st_uid == uid and not status.st_mode & _OTHERS_WRITE:
            return UserFolder(handle, uid)
        os.close(handle)
        return None

    def make_user_folder(self, uid: int) -> None:
        """Make a user's folder (0755) unless something has its name. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            _make_folder(str(uid), self._handle)
            if uid != os.geteuid():
                os.chown(str(uid), uid, -1, dir_fd=self._handle, follow_symlinks=False)


def own_folder(path: str) -> tuple[RuntimeFolder, UserFolder]:
    """The runtime folder and this user's folder in it; makes them (0755) if they are missing.

    Raises UnsafeError: other users could change their content, or they cannot be made.
    """
    uid = os.geteuid()
    runtime = _made(path)
    try:
        runtime.make_user_folder(uid)
        folder = runtime.user_folder(uid)
    except OSError as error:
        raise UnsafeError(
            f"{path}/{uid}: cannot be made: {error.strerror}; let root make it: "
            f"install -d -m 755 -o {uid} {path}/{uid}"
        ) from error
    if folder is None:
        raise UnsafeError(f"{path}/{uid}: is not a folder of user {uid} alone; let root remove it")
    return runtime, folder


def open_runtime(path: str) -> RuntimeFolder:
    """The folder, of any owner: only for acting as the owners of the folders in it.

    Raises:
        UnsafeError: all users can put something into it.
        OSError: there is none, or it is no folder.
    """
    handle = os.open(path, _FOLDER)
    if os.fstat(handle).st_mode & _OTHERS_WRITE:
        os.close(handle)
        raise UnsafeError(_OPEN.format(path))
    return RuntimeFolder(handle)


def folder_of_root(path: str) -> tuple[RuntimeFolder, UserFolder]:
    """As `own_folder` for root, with a runtime folder of any owner: only its maker relies on what is in it.

    Raises UnsafeError.
    """
    try:
        runtime = open_runtime(path)
    except FileNotFoundError:
        return own_folder(path)
    except OSError as error:
        raise UnsafeError(f"{path}: cannot be used: {error.strerror}") from error
    runtime.make_user_folder(ROOT)
    folder = runtime.user_folder(ROOT)
    if folder is None:
        raise UnsafeError(f"{path}/{ROOT}: is not a folder of root alone; remove it")
    return runtime, folder


def _made(path: str) -> RuntimeFolder:
    parent, name = os.path.realpath(Path(path).parent), Path(path).name
    for above in (*reversed(Path(parent).parents), Path(parent)):
        _check(above.lstat(), str(above))
    try:
        with contextlib.suppress(FileExistsError):
            _make_folder(str(Path(parent, name)))
        handle = os.open(Path(parent, name), _FOLDER)
    except OSError as error:
        raise UnsafeError(f"{path}: cannot be used: {error.strerror}") from error
    try:
        _check(os.fstat(handle), path, sticky_will_do=False)
    except UnsafeError:
        os.close(handle)
        raise
    return RuntimeFolder(handle)


def _make_folder(path: str, above: int | None = None) -> None:
    """0755 whatever the umask: users read root's marks."""
    before = os.umask(0o022)
    try:
        os.mkdir(path, 0o755, dir_fd=above)
    finally:
        os.umask(before)


def _check(status: os.stat_result, path: str, *, sticky_will_do: bool = True) -> None:
    if status.st_uid not in (ROOT, os.geteuid()):
        raise UnsafeError(
            f"{path}: belongs to user {status.st_uid}, who could end uses of this node or put something in "
            "its place; let root remove it, or name another folder: donation.runtime_directory"
        )
    if status.st_mode & _OTHERS_WRITE and not (sticky_will_do and status.st_mode & stat.S_ISVTX):
        raise UnsafeError(_OPEN.format(path))
