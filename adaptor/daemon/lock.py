"""One daemon per state directory."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from adaptor.errors import AdaptorError

LOCK = "daemon.lock"


def take_lock(directory: Path) -> IO[str]:
    """The lock, for as long as the returned file is open; the kernel releases it with the process.

    Raises:
        AdaptorError: another daemon holds it.
    """
    path = directory / LOCK
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+", encoding="utf-8")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = file.read().strip() or "unknown"
        file.close()
        raise AdaptorError(
            f"{directory}: a daemon runs here already ({holder}); `adaptor daemon stop` ends it"
        ) from error
    file.truncate(0)
    file.write(f"pid {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file
