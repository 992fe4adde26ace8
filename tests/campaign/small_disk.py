"""A small file system of its own, which can be filled to the last byte; only root may mount one."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


class SmallDisk:
    """Mounted at `path`; `small_disk` makes one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / ".ballast"

    def fill(self) -> None:
        """Until nothing more can be written."""
        block = b"\0" * 65536
        handle = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            while block:
                try:
                    os.write(handle, block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    block = block[: len(block) // 2]
        finally:
            os.close(handle)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def make_read_only(self) -> bool:
        """False where files on it are open for writing."""
        return self._remount("ro")

    def make_writable(self) -> None:
        if not self._remount("rw"):
            raise OSError(f"{self.path} stays read-only")

    def _remount(self, how: str) -> bool:
        return _mount(["mount", "-o", f"remount,{how}", str(self.path)])


@contextlib.contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[SmallDisk | None]:
    """None where none can be mounted: then a folder stands in its place."""
    path.mkdir(mode=0o700)
    if not _mount(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(path)]):
        yield None
        return
    try:
        yield SmallDisk(path)
    finally:
        _mount(["umount", "--lazy", str(path)])


def _mount(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except OSError:
        return False
