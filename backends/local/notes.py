"""Notes on disk that are written once, whole or not at all. Standard library only.

A job of the local site is three notes in its state directory: `<id>.job.json` when it is submitted,
`<id>.start.json` when it is claimed by its supervisor (or by its cancellation, whichever is first),
`<id>.end.json` when it has ended. None is ever changed, so nothing has to be merged after a crash.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

JOB = "job"
START = "start"
END = "end"


def note_path(directory: Path, id: int, kind: str) -> Path:
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


def read_note(path: Path) -> Any:
    """Raises OSError, or ValueError for a damaged note."""
    return json.loads(path.read_bytes())
