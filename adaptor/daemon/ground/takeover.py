"""Check that this version can take over the state directory of another one, whose daemon may still run."""

from __future__ import annotations

import contextlib
from pathlib import Path

from adaptor.errors import AdaptorError
from adaptor.file_format import newer
from adaptor.journal.database import check_format
from adaptor.processes import notes
from adaptor.protocol import access
from adaptor.protocol.keys import KEYS, read_keys

_NUMBERED = {access.CLIENT_ACCESS: access.FORMAT, "sites/*/*.json": notes.FORMAT}
"""Files by their format; the notes of local jobs are below `sites`."""


def check_takeover(directory: Path) -> None:
    """Raises AdaptorError: a newer version has written one of the files, or the keys are damaged."""
    check_format(directory)
    if (directory / KEYS).exists():
        read_keys(directory / KEYS)
    for pattern, known in _NUMBERED.items():
        for path in directory.glob(pattern):
            with contextlib.suppress(OSError):
                if problem := newer(path.read_bytes(), known):
                    raise AdaptorError(f"{path}: {problem}")
