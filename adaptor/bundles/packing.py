"""Packs the folders and files that a bag stages into one archive, named by the hash of its content.

The same content gives the same archive, so bags that stage the same share one. An archive is a tar file
without compression: a node reads it once, in order, and its processors are for tasks.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, cast

from adaptor.bag_spec import BUNDLES, Bundle, StagedItem
from adaptor.bundles.archives import archive_name
from adaptor.bundles.environments import environment_at
from adaptor.errors import UsageError
from adaptor.protocol.state_directory import private_directory
from adaptor.units import counted, format_size

LARGEST = 64 << 30  # bytes of a bundle
MOST_FILES = 1_000_000
_SAY_EVERY = 5.0  # seconds between two lines on the progress
_PART = 1 << 20
_CHECK_EVERY = 256 << 20  # bytes between two looks at the free space
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FORMAT = tarfile.GNU_FORMAT
_RESERVE = 2 * _CHECK_EVERY
"""Bytes of the state directory's disk that an archive leaves free."""
_PROGRAM = 0o111


class _Hashed:
    """The archive as it is written: counts and hashes what goes to the disk."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._file.write(data)


def pack(paths: Sequence[str], state: Path, say: Callable[[str], None]) -> Bundle:
    """Write the archive of these folders and files into the state directory; what it is.

    Args:
        paths: absolute.
        say: gets a line every few seconds.

    Raises:
        UsageError: a path cannot be packed, or changes meanwhile; they are too large, or the disk is full.
    """
    items = items_of(paths)
    folder = private_directory(state / BUNDLES)
    temporary = folder / f".new-{os.getpid()}-{os.urandom(4).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb", buffering=_PART) as file:
            hashed = _Hashed(file)
            with tarfile.open(fileobj=cast("IO[bytes]", hashed), mode="w|", format=_FORMAT) as archive:
                packer = _Packer(archive, folder, say)
                for item in items:
                    packer.add_item(item)
            file.flush()
            os.fsync(handle)
        digest = hashed.hash.hexdigest()
        temporary.replace(folder / archive_name(digest))
    except OSError as error:
        raise UsageError(f"--stage: {folder}: the archive cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return Bundle(digest, items, packer.size, packer.files, executable=packer.executable)


def items_of(paths: Sequence[str]) -> tuple[StagedItem, ...]:
    """Raises UsageError: a path is not there, or two have the same name."""
    items: dict[str, StagedItem] = {}
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110 (a path of text, as in the tasks)
            part = r"; a name with a comma has a backslash before it: 'a\,b'" if len(paths) > 1 else ""
            raise UsageError(f"--stage: {path}: no such file or folder{part}")
        name = os.path.basename(path)  # noqa: PTH119
        if not name:
            raise UsageError(f"--stage: {path}: cannot be staged; name a folder below it")
        same, real = items.get(name), os.path.realpath(path)
        if same is not None and same.real == real:
            continue
        if same is not None:
            raise UsageError(
                f"--stage: {same.path} and {path} have the same name, under which tasks find them; rename one"
            )
        items[name] = StagedItem(path, name, real, environment_at(path))
    return tuple(items.values())


class _Packer:
    """Adds what is staged to an archive, in the order of the names.

    Names, modes, times and content of files alone: owners, and the times of folders, are no content. A file
    server answers one question for a file, and two for a folder.
    """

    def __init__(self, archive: tarfile.TarFile, folder: Path, say: Callable[[str], None]) -> None:
        """`folder`: where the archive is written."""
        self.size = self.files = 0
        self.executable = False
        self._archive = archive
        self._folder = folder
        self._state = folder.parent.stat()
        self._say = say
        self._entries = 0
        self._told = time.monotonic()
        self._item = ""
        self._checked = -_CHECK_EVERY  # the size at the last look at the disk

    def add_item(self, item: StagedItem) -> None:
        """A staged path, whose link is followed, and all below it. Raises UsageError, OSError."""
        self._item = item.path
        if os.path.isdir(item.path):  # noqa: PTH112
            self._add_folder(item.path, item.name)
        else:
            self._add_file(item.path, item.name, links=True)

    def _add_folder(self, path: str, name: str) -> None:
        self._count()
        member = tarfile.TarInfo(name)
        member.type, member.mode = tarfile.DIRTYPE, 0o700
        self._archive.addfile(member)
        try:
            with os.scandir(path) as found:
                inner = sorted(found, key=lambda each: each.name)
        except OSError as error:
            raise _unreadable(path, error) from error
        for each in inner:
            if each.inode() == self._state.st_ino and os.path.samestat(
                each.stat(follow_symlinks=False), self._state
            ):
                continue  # the state directory: archives, and the keys of workers
            _check_name(each.path)
            if each.is_symlink():
                self._add_link(each.path, f"{name}/{each.name}")
            elif each.is_dir(follow_symlinks=False):
                self._add_folder(each.path, f"{name}/{each.name}")
            elif each.is_file(follow_symlinks=False):
                self._add_file(each.path, f"{name}/{each.name}")
            else:
                raise _no_file(each.path)

    def _add_link(self, path: str, name: str) -> None:
        self._count()
        member = tarfile.TarInfo(name)
        try:
            member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, os.readlink(path)  # noqa: PTH115
        except OSError as error:
            raise _unreadable(path, error) from error
        self._archive.addfile(member)

    def _add_file(self, path: str, name: str, *, links: bool = False) -> None:
        """A file of any owner."""
        try:
            file = os.fdopen(os.open(path, _READ if links else _READ | os.O_NOFOLLOW), "rb")
        except OSError as error:
            raise _unreadable(path, error) from error
        with file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(path)
            self._count(status.st_size)
            self.files += 1
            member, program = tarfile.TarInfo(name), bool(status.st_mode & _PROGRAM)
            member.mode, member.size, member.mtime = (
                0o500 if program else 0o400,
                status.st_size,
                int(status.st_mtime),
            )
            self.executable = self.executable or program or ".so" in name
            try:
                self._archive.addfile(member, file)
            except OSError as error:
                if error.args == ("unexpected end of data",):  # tarfile's word for a file that is shorter now
                    raise UsageError(_CHANGED.format(path)) from error
                raise
            if _changed(status, os.fstat(file.fileno())):
                raise UsageError(_CHANGED.format(path))

    def _count(self, size: int = 0) -> None:
        """One more is added. Raises UsageError: they are too many, or there is no room for it."""
        self._entries += 1
        self.size += size
        if self.size > LARGEST or self._entries > MOST_FILES:
            raise UsageError(
                f"--stage: {self._item}: more than {MOST_FILES:,} files or {format_size(LARGEST)} are staged;"
                " stage what all tasks read, and leave data that each reads a part of where it is"
            )
        if self.size >= self._checked + _CHECK_EVERY:
            self._checked = self.size
            disk = os.statvfs(self._folder)
            if (free := disk.f_bavail * disk.f_frsize) < size + _RESERVE:
                raise UsageError(
                    f"--stage: {self._item}: does not fit into {self._folder}: {format_size(free)} are left;"
                    " stage less, or name another state directory ($ADAPTOR_DIR)"
                )
        if time.monotonic() - self._told >= _SAY_EVERY:
            self._told = time.monotonic()
            self._say(
                f"staging {self._item}: {counted(self._entries, 'file')}, {format_size(self.size)} so far"
            )


_CHANGED = "--stage: {}: has changed while it was packed; submit again when nothing writes there"


def _unreadable(path: str, error: OSError) -> UsageError:
    return UsageError(f"--stage: {path}: cannot be read: {error.strerror}")


def _no_file(path: str) -> UsageError:
    return UsageError(f"--stage: {path}: is no file, folder or link; stage folders without it")


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UsageError(f"--stage: {path!r}: its name is not UTF-8 text; rename it") from None


def _changed(before: os.stat_result, now: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) != (now.st_size, now.st_mtime_ns)
