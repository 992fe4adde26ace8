"""Writes a file in one step: a reader sees the old content or the new one, never a part.

Two writers stay apart from this one: `processes.notes` never replaces a file, and
`adaptor_donation_agents.folders` reaches everything from an open folder.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

PRIVATE = 0o600


def write_private(path: Path, data: bytes) -> None:
    """Write a 0600 file, private from its first byte, that a crash leaves whole. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    write_atomically(path, data, temporary=temporary, mode=PRIVATE, sync=True)


def write_atomically(path: Path, data: bytes, *, temporary: Path, mode: int, sync: bool) -> None:
    """Write a file under a temporary name and rename it.

    Args:
        temporary: in the same folder, and no other writer's at the same time. What an earlier writer left
            there is removed: it may be open to others, so nothing is ever written into it.
        mode: of the file, less the umask.
        sync: whether the data are on the disk before the file gets its name.

    Raises:
        OSError: the file keeps its old content, and the temporary one is gone if it can be removed.
    """
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
