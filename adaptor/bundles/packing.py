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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, cast

import msgspec

from adaptor.bag_spec import BUNDLES, Bundle, StagedItem
from adaptor.bundles.environments import environment_at
from adaptor.errors import UsageError
from adaptor.private_files import NotOursError, open_ours
from adaptor.protocol.state_directory import private_directory
from adaptor.units import counted, format_size

LARGEST = 64 << 30  # bytes of a bundle
MOST_FILES = 1_000_000
_SAY_EVERY = 5.0  # seconds between two lines on the progress
_PART = 1 << 20
_RESERVE = 64 << 20  # bytes of the state directory's disk that an archive leaves free
_PROGRAM = 0o111
_SUFFIX = ".tar"
_SUBMITTING = 3600.0  # seconds for which an archive waits for its bag


def archive_name(digest: str) -> str:
    """The name of an archive in `BUNDLES`."""
    return f"{digest}{_SUFFIX}"


class _Entry(msgspec.Struct, frozen=True):
    """A folder, file or link of a bundle."""

    path: str
    name: str  # in the archive
    status: os.stat_result


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
    entries = [entry for item in items for entry in _below(item.path, item.name)]
    files = [entry for entry in entries if stat.S_ISREG(entry.status.st_mode)]
    size = sum(entry.status.st_size for entry in files)
    _check_size(items, size, len(entries))
    folder = private_directory(state / BUNDLES)
    disk = os.statvfs(folder)
    if (free := disk.f_bavail * disk.f_frsize) < size + _RESERVE:
        raise UsageError(
            f"--stage: {format_size(size)} do not fit into {folder}: {format_size(free)} are free; stage"
            " less, or name another state directory ($ADAPTOR_DIR)"
        )
    digest = _write(entries, size, folder, say)
    programs = any(entry.status.st_mode & _PROGRAM or ".so" in entry.name for entry in files)
    return Bundle(digest, items, size, len(files), executable=programs)


def items_of(paths: Sequence[str]) -> tuple[StagedItem, ...]:
    """Raises UsageError: a path is not there, or two have the same name."""
    items: dict[str, StagedItem] = {}
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110 (a path of text, as in the tasks)
            raise UsageError(f"--stage: {path}: no such file or folder")
        name = os.path.basename(path)  # noqa: PTH119
        if not name:
            raise UsageError(f"--stage: {path}: cannot be staged; name a folder below it")
        if (same := items.get(name)) is not None:
            raise UsageError(
                f"--stage: {same.path} and {path} have the same name, under which tasks find them; rename one"
            )
        items[name] = StagedItem(path, name, os.path.realpath(path), environment_at(path))
    return tuple(items.values())


def _check_size(items: Sequence[StagedItem], size: int, entries: int) -> None:
    if size > LARGEST or entries > MOST_FILES:
        raise UsageError(
            f"--stage: {', '.join(item.path for item in items)}: {counted(entries, 'file')} of"
            f" {format_size(size)} are more than {MOST_FILES:,} or {format_size(LARGEST)}; stage what all"
            " tasks read, and leave data that each reads a part of where it is"
        )


def _below(path: str, name: str) -> Iterator[_Entry]:
    """A staged path itself, whose link is followed, and all below it, in the order of their names."""
    try:
        status = os.stat(path)  # noqa: PTH116
        yield _Entry(path, name, status)
        if stat.S_ISDIR(status.st_mode):
            yield from _inside(path, name)
        else:
            _check_kind(path, status)
    except OSError as error:
        raise UsageError(f"--stage: {error.filename or path}: cannot be read: {error.strerror}") from error


def _inside(path: str, name: str) -> Iterator[_Entry]:
    with os.scandir(path) as found:
        inner = sorted(found, key=lambda each: each.name)
    for each in inner:
        status = each.stat(follow_symlinks=False)
        _check_kind(each.path, status)
        yield _Entry(each.path, f"{name}/{each.name}", status)
        if stat.S_ISDIR(status.st_mode):
            yield from _inside(each.path, f"{name}/{each.name}")


def _check_kind(path: str, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        raise UsageError(f"--stage: {path}: is no file, folder or link; stage the folders beside it instead")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UsageError(f"--stage: {path!r}: its name is not UTF-8 text; rename it") from None


def _write(entries: Sequence[_Entry], size: int, folder: Path, say: Callable[[str], None]) -> str:
    """Write the archive under its name; the digest."""
    temporary = folder / f".new-{os.getpid()}-{os.urandom(4).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb", buffering=_PART) as file:
            hashed = _Hashed(file)
            with tarfile.open(
                fileobj=cast("IO[bytes]", hashed), mode="w|", format=tarfile.GNU_FORMAT
            ) as archive:
                _add_all(archive, entries, size, say)
            file.flush()
            os.fsync(handle)
        digest = hashed.hash.hexdigest()
        temporary.replace(folder / archive_name(digest))
    except OSError as error:
        raise UsageError(f"--stage: {folder}: the archive cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return digest


def _add_all(
    archive: tarfile.TarFile, entries: Sequence[_Entry], size: int, say: Callable[[str], None]
) -> None:
    done, told = 0, time.monotonic()
    for number, entry in enumerate(entries):
        _add(archive, entry)
        done += entry.status.st_size
        if time.monotonic() - told >= _SAY_EVERY:
            told = time.monotonic()
            files = f"{number + 1:,} of {counted(len(entries), 'file')}"
            say(f"staging: {files}, {format_size(done)} of {format_size(size)}")


def _add(archive: tarfile.TarFile, entry: _Entry) -> None:
    """Names, modes, times and content alone: the owner and the order of a file system are no content."""
    member, mode = tarfile.TarInfo(entry.name), entry.status.st_mode
    member.mtime = int(entry.status.st_mtime)
    if stat.S_ISDIR(mode):
        member.type, member.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(member)
    elif stat.S_ISLNK(mode):
        member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, os.readlink(entry.path)  # noqa: PTH115
        archive.addfile(member)
    else:
        member.mode, member.size = 0o500 if mode & _PROGRAM else 0o400, entry.status.st_size
        with _opened(entry) as file:
            archive.addfile(member, file)
            if _changed(entry.status, os.fstat(file.fileno())):
                raise UsageError(_CHANGED.format(entry.path))


_CHANGED = "--stage: {}: has changed while it was packed; submit again when nothing writes there"


@contextlib.contextmanager
def _opened(entry: _Entry) -> Iterator[IO[bytes]]:
    """A file of any owner, as it was when it was found. Raises UsageError."""
    try:
        file = os.fdopen(os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise UsageError(f"--stage: {entry.path}: cannot be read: {error.strerror}") from error
    with file:
        if _changed(entry.status, os.fstat(file.fileno())):
            raise UsageError(_CHANGED.format(entry.path))
        try:
            yield file
        except OSError as error:
            if error.args == ("unexpected end of data",):  # tarfile's word for a file that has become shorter
                raise UsageError(_CHANGED.format(entry.path)) from error
            raise


def _changed(before: os.stat_result, now: os.stat_result) -> bool:
    return (before.st_ino, before.st_dev, before.st_size, before.st_mtime_ns) != (
        now.st_ino,
        now.st_dev,
        now.st_size,
        now.st_mtime_ns,
    )


def old_archives(state: Path, now: float) -> dict[str, Path]:
    """By digest, the archives that belong to no bag that is being submitted, and half-written ones.

    `now`: epoch seconds.
    """
    found: dict[str, Path] = {}
    with contextlib.suppress(OSError), os.scandir(state / BUNDLES) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < now - _SUBMITTING:
                found[entry.name.removesuffix(_SUFFIX)] = Path(entry.path)
    return found


def is_there(state: Path, digest: str) -> bool:
    """Whether the archive of a bundle is in the state directory, as a file of this user's alone."""
    try:
        os.close(open_ours(state / BUNDLES / archive_name(digest), closed=True))
    except (NotOursError, OSError):
        return False
    return True
