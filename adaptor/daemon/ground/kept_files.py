"""Small files that the daemon writes and others need: written again if they were removed or changed."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from adaptor.private_files import write_private

log = logging.getLogger(__name__)

_Seen = tuple[int, int, int, int, int]


class KeptFiles:
    def __init__(self) -> None:
        self._content: dict[Path, bytes] = {}
        self._seen: dict[Path, _Seen | None] = {}  # status of the file with this content

    def keep(self, path: Path) -> None:
        """Keep a file in its present state. Raises OSError."""
        self._content[path], self._seen[path] = path.read_bytes(), _seen(path)

    def drop(self, path: Path) -> None:
        """Stop keeping a file."""
        self._content.pop(path, None)
        self._seen.pop(path, None)

    def restore(self) -> None:
        """Write again what is not as it was. In any thread. Raises OSError: that cannot be done now."""
        for path, content in list(self._content.items()):
            now = _seen(path)
            if now is not None and now == self._seen.get(path):
                continue
            if now is None or path.read_bytes() != content:
                log.warning("%s was %s: it is written again", path, "removed" if now is None else "changed")
                write_private(path, content)
                now = _seen(path)
            if path in self._content:  # it was not dropped meanwhile
                self._seen[path] = now


def _seen(path: Path) -> _Seen | None:
    """Identity of a file; None: it is not there. Raises OSError."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode
