"""Notes on disk, each written once, whole or not at all. Standard library only.

Three notes in one folder record a supervised worker: `<id>.job.json` at its submission, `<id>.start.json`
when its supervisor claims it (or its cancellation does, whichever is first), `<id>.end.json` at its end.
No note ever changes, so a crash leaves nothing to merge. Each carries the number of its format.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from adaptor.file_format import newer_content
from adaptor.private_files import PRIVATE, write_atomically

JOB = "job"
START = "start"
END = "end"
FORMAT = 1

_PATIENCE = 600.0  # seconds of tries to write a note, for instance on a full disk


def note_path(directory: Path, id: int | str, kind: str) -> Path:
    return directory / f"{id}.{kind}.json"


def numbered(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a note, with the number of its format."""
    return {"format": FORMAT, **content}


def write_once(path: Path, content: dict[str, Any]) -> None:
    """Write a 0600 note, visible only when it is complete.

    Raises:
        FileExistsError: the note exists; it stays as it is.
        OSError: the disk is full, or the folder is gone or not writable; there is no note.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    data = json.dumps(numbered(content)).encode()
    write_atomically(path, data, temporary=temporary, mode=PRIVATE, sync=True, replace=False)


def write_patiently(path: Path, content: dict[str, Any]) -> None:
    """Try to write a note until it exists, its folder is gone, SIGTERM comes, or 10 minutes have passed.

    The caller has blocked SIGTERM.
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
    """Read a note. Raises OSError, or ValueError for a damaged note."""
    data = path.read_bytes()
    try:
        return parse_note(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_note(data: bytes) -> Any:
    """Content of a note. Raises ValueError: it is damaged, or a newer version has written it."""
    try:
        content = json.loads(data, parse_constant=_no_number, parse_float=_number)
    except RecursionError as error:  # a bomb of nested lists
        raise ValueError(str(error)) from error
    if problem := newer_content(content, FORMAT):
        raise ValueError(problem)
    return content


def _no_number(word: str) -> NoReturn:
    """Python's JSON has NaN and Infinity, with which no comparison means anything."""
    raise ValueError(f"{word} is no number")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)
