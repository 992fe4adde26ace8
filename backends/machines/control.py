"""The folder of a connection's socket, by which other ssh become guests of the connection."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PLACE = "/tmp"  # noqa: S108  (each folder is new and 0700)
_PREFIX = "adaptor-ssh-"
_HELD = "held"


class ControlFolder:
    """Private, and short: the path of a unix socket may have 108 characters at most."""

    def __init__(self) -> None:
        """Also removes what processes that were killed have left. Raises OSError."""
        _sweep()
        self._path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE))
        # Make a file that is locked before it has its name: others sweep away what has it and is not.
        path = self._path / _HELD
        new = path.with_suffix(".new")
        handle = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(path)
        self._held = handle

    @property
    def socket(self) -> Path:
        return self._path / "ssh"

    def remove(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._held)


def _sweep() -> None:
    for path in Path(_PLACE).glob(f"{_PREFIX}*/{_HELD}"):
        with contextlib.suppress(OSError):
            if path.parent.stat().st_uid == os.getuid() and not _is_held(path):
                shutil.rmtree(path.parent, ignore_errors=True)


def _is_held(path: Path) -> bool:
    """Whether a process lives that has the lock; the kernel releases it with the process."""
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)
