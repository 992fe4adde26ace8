"""Notes on disk that are written once, whole or not at all. Standard library only.

What is supervised is three notes in one folder: `<id>.job.json` when it is submitted, `<id>.start.json`
when it is claimed by its supervisor (or by its cancellation, whichever is first), `<id>.end.json` when it
has ended. None is ever changed, so nothing has to be merged after a crash.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

JOB = "job"
START = "start"
END = "end"

_PATIENCE = 600.0
"""Seconds for which a note is tried to be written, for instance on a full disk."""


def note_path(directory: Path, id: int | str, kind: str) -> Path:
    return directory / f"{id}.{kind}.json"


def write_once(path: Path, content: dict[str, Any]) -> None:
    """Write a 0600 note, visible only when it is complete.

    Raises:
        FileExistsError: the note is there already; it is left as it is.
        OSError: the disk is full, the folder is gone or not writable; no note is there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(content).encode())
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # unlike a rename, a link never replaces what is there
    finally:
        temporary.unlink(missing_ok=True)


def write_patiently(path: Path, content: dict[str, Any]) -> None:
    """Write a note again and again until it is there, its folder is gone, or this process is told to end.

    SIGTERM is to be blocked.
    """
    give_up = time.monotonic() + _PATIENCE
    while not _written(path, content) and path.parent.is_dir() and time.monotonic() < give_up:
        if signal.sigtimedwait({signal.SIGTERM}, 1.0) is not None:
            return


def _written(path: Path, content: dict[str, Any]) -> bool:
    try:
        write_once(path, content)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def read_note(path: Path) -> Any:
    """Raises OSError, or ValueError for a damaged note."""
    return json.loads(path.read_bytes())
