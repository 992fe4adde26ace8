"""One user's folder on a node, held open. Its files are small, and written whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from types import TracebackType
from typing import Any

from adaptor.processes.notes import parse_note

_LARGEST = 65536
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UserFolder:
    """All access goes through the open folder, so that no rename in the meantime leads elsewhere."""

    def __init__(self, handle: int, uid: int) -> None:
        """`handle`: of the folder, which belongs to user `uid` alone."""
        self._handle = handle
        self._uid = uid

    def __enter__(self) -> UserFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def names(self) -> list[str]:
        return os.listdir(self._handle)  # noqa: PTH208  (an open folder has no path)

    def has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except OSError:
            return False
        return True

    def read(self, name: str) -> dict[str, Any] | None:
        """None: there is no such file.

        Raises:
            ValueError: it is damaged, or no file of this user.
        """
        try:
            handle = os.open(name, _READ, dir_fd=self._handle)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(f"{name}: {error.strerror}") from error
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != self._uid:
                raise ValueError(f"{name}: is not a file of user {self._uid}")
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
        temporary = f".{name}.{os.getpid()}"
        self.remove(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(temporary, flags, 0o600, dir_fd=self._handle)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(content).encode())
            os.fchmod(handle, mode)
        os.rename(temporary, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)

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
