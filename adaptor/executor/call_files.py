"""Calls and results that are too long for the link: private files in the bag's output folder."""

from __future__ import annotations

import time
from pathlib import Path

from adaptor.private_files import open_ours, write_private

_PATIENCE = 5.0
"""Seconds until a file that another node has written is seen: file servers let clients remember for a moment
that a file is missing."""
_PAUSE = 0.1


def write(folder: Path, name: str, data: bytes) -> None:
    """Write a private file into the folder of the calls. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / name, data, sync=False)


def take(folder: Path, name: str) -> bytes:
    """The content of a file, which is removed. Raises OSError: it is not there, or not ours."""
    with open(_open(folder / name), "rb") as file:
        data = file.read()
    remove(folder, name)
    return data


def remove(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder if nothing is left in it."""
    try:
        folder.rmdir()
    except OSError:
        return


def _open(path: Path) -> int:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return open_ours(path)
        except FileNotFoundError:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE)
