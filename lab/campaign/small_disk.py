"""A small file system of its own that can be full, over quota, or broken; only root may mount one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

_Disk = TypeVar("_Disk", bound="SmallDisk")
DiskMaker = Callable[[Path, int], AbstractContextManager["SmallDisk | None"]]
"""From a path and a size in MB; None where none can be mounted: then a folder stands in its place."""


class SmallDisk:
    """Mounted at `path`; `small_disk` makes one. In memory."""

    def __init__(self, path: Path, megabytes: int) -> None:
        self.path, self._megabytes = path, megabytes
        self._ballast = path / ".ballast"

    def mount(self) -> bool:
        """False: it cannot be mounted here."""
        options = f"size={self._megabytes}m,mode=0700"
        return _done("mount", "-t", "tmpfs", "-o", options, "tmpfs", self.path)

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

    def discard(self) -> None:
        """Whoever still has a file open there keeps it."""
        _done("umount", "--lazy", self.path)

    def _remount(self, how: str) -> bool:
        return _done("mount", "-o", f"remount,{how}", self.path)


class QuotaDisk(SmallDisk):
    """A subvolume of a Btrfs, whose quota binds root too."""

    def __init__(self, path: Path, megabytes: int) -> None:
        super().__init__(path, megabytes)
        self._image, self._whole = path.with_suffix(".btrfs"), path.with_suffix(".whole")

    def mount(self) -> bool:
        _make_image(self._image, max(128, self._megabytes))
        self._whole.mkdir()
        subvolume = self._whole / "user"
        return (
            _done("mkfs.btrfs", "--quiet", self._image)
            and _done("mount", "-o", "loop", self._image, self._whole)
            and _done("btrfs", "quota", "enable", self._whole)
            and _done("btrfs", "subvolume", "create", subvolume)
            and _done("mount", "--bind", subvolume, self.path)
        )

    def exceed_quota(self) -> None:
        """Set a quota below what lies here."""
        self._limit("1")

    def lift_quota(self) -> None:
        self._limit("none")

    def discard(self) -> None:
        super().discard()
        _done("umount", "--lazy", self._whole)
        self._image.unlink()

    def _limit(self, amount: str) -> None:
        # By the whole: the subvolume itself, being over its quota, takes no change of it.
        id = subprocess.check_output(["btrfs", "inspect-internal", "rootid", self.path], text=True).strip()
        _must("btrfs", "qgroup", "limit", amount, f"0/{id}", self._whole)


class FailingDisk(SmallDisk):
    """An ext4 that becomes read-only at its first error, and stays so until it is mounted anew."""

    def __init__(self, path: Path, megabytes: int) -> None:
        super().__init__(path, megabytes)
        self._image = path.with_suffix(".ext4")

    def mount(self) -> bool:
        _make_image(self._image, self._megabytes)
        return _done("mkfs.ext4", "-q", "-F", self._image) and self._mount()

    def fail(self) -> None:
        device = subprocess.check_output(["findmnt", "-no", "SOURCE", self.path], text=True).strip()
        Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error").write_text("1")

    def replace(self) -> None:
        """By a repaired copy of what has reached the disk; what is open on the old one stays read-only."""
        old = self._image.rename(self._image.with_suffix(".old"))
        super().discard()
        shutil.copyfile(old, self._image)
        old.unlink()
        _done("e2fsck", "-f", "-y", self._image)
        if not self._mount():
            raise OSError(f"{self.path} cannot be mounted again")

    def discard(self) -> None:
        super().discard()
        self._image.unlink()

    def _mount(self) -> bool:
        return _done("mount", "-o", "loop,errors=remount-ro", self._image, self.path)


def disk_maker(kind: type[_Disk]) -> Callable[[Path, int], AbstractContextManager[_Disk | None]]:
    """A function that makes disks of this kind."""

    @contextlib.contextmanager
    def make(path: Path, megabytes: int) -> Iterator[_Disk | None]:
        path.mkdir(mode=0o700)
        disk = kind(path, megabytes)
        if not disk.mount():
            yield None
            return
        path.chmod(0o700)
        try:
            yield disk
        finally:
            disk.discard()

    return make


small_disk = disk_maker(SmallDisk)
quota_disk = disk_maker(QuotaDisk)
failing_disk = disk_maker(FailingDisk)


def _make_image(path: Path, megabytes: int) -> None:
    with path.open("wb") as image:
        image.truncate(megabytes << 20)


def _done(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except OSError:
        return False


def _must(*command: str | Path) -> None:
    subprocess.run(command, capture_output=True, check=True, timeout=60)
