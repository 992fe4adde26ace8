"""Work on private files: any number of reads, writes and removals in one request.

`LocalFiles` does it on this machine. `RemoteFiles` sends it to a process on another machine that does it:
one round trip. All work may be repeated without harm: a caller that got no answer does so.

No file is read through a link or from another user, and each is written whole or not at all, in folders that
belong to this user (`private_files`).
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.errors import AdaptorError
from adaptor.private_files import NotOursError, open_ours, write_private
from adaptor.protocol.state_directory import private_directory

_MOST_BYTES = 64 * 1024 * 1024
_GONE = frozenset({errno.ENOENT, errno.ESTALE})
"""The errors of a file that is not there; the second one from a file server that had it."""


class FilesError(AdaptorError):
    """The work cannot be done now. It may be done in part."""


class NewFile(msgspec.Struct, frozen=True, array_like=True):
    """A 0600 file to be written in one step."""

    path: bytes
    data: bytes
    unless: bytes = b""  # nothing is written if this file is there
    sync: bool = False  # whether a crash of the machine leaves it whole, too


class FileWork(msgspec.Struct, frozen=True, kw_only=True):
    """Done in this order. Paths are relative to the home directory there, or absolute."""

    make: list[bytes] = []  # folders of mode 0700, made with those above them
    remove: list[bytes] = []  # files, and folders with all that is in them; what is not there is no error
    write: list[NewFile] = []
    names: list[bytes] = []  # folders whose names are asked for
    fresh: bool = False
    """Whether these names come from the file server and not from its client's memory: the mode of the folders
    becomes 0700, which asks it."""
    read: list[bytes] = []
    """Files whose ends are asked for; where these have more than 64 MiB, only the first ones are read."""
    most: int = _MOST_BYTES  # bytes of each file that is read, from its end
    whole: bool = False  # whether nothing of a larger file is read


class FileEnd(msgspec.Struct, frozen=True, array_like=True):
    path: bytes
    size: int = 0
    data: bytes = b""
    problem: str = ""  # why it is not read
    foreign: bool = False  # whether it is a link, no plain file or another user's, and never can be read


class FilesDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    made: list[bytes] = []  # the absolute paths of the folders in `make`
    homeless: list[bytes] = []  # of the files in `write`, those that have no folder
    held: list[bytes] = []  # files that were not written because of `unless`
    names: dict[bytes, list[bytes]] = {}  # by folder; a folder that is not there is left out
    ends: list[FileEnd] = []  # a file that is not there is left out
    read: int = 0  # number of files in `read` that were looked at, from the first one on


class Files(Protocol):
    """Calls block, and may come from several threads."""

    def run(self, work: FileWork) -> FilesDone:
        """Do the work on files. Raises FilesError."""

    def close(self) -> None:
        """Release everything, until more is asked for."""


class LocalFiles:
    """Work on private files of this machine."""

    def run(self, work: FileWork) -> FilesDone:
        made = [_make(path) for path in work.make]
        for path in work.remove:
            _remove(_path(path))
        homeless, held = list[bytes](), list[bytes]()
        for file in work.write:
            if file.unless and _is_there(_path(file.unless)):
                held.append(file.path)
            elif not _write(file):
                homeless.append(file.path)
        names = {
            folder: found for folder in work.names if (found := _names(_path(folder), work.fresh)) is not None
        }
        ends, read = _ends(work)
        return FilesDone(made=made, homeless=homeless, held=held, names=names, ends=ends, read=read)

    def close(self) -> None:
        """Does nothing: no file is open."""


def _path(name: bytes) -> Path:
    return Path(os.fsdecode(name)).expanduser().absolute()


def _make(name: bytes) -> bytes:
    try:
        return os.fsencode(private_directory(_path(name)))
    except AdaptorError as error:
        raise FilesError(str(error)) from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink()
    except OSError as error:
        if error.errno not in _GONE:
            raise _failed(path, "removed", error) from error


def _is_there(path: Path) -> bool:
    """Asked by opening it: the file server answers that, and no cache."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
    except OSError as error:
        return error.errno not in _GONE
    return True


def _write(file: NewFile) -> bool:
    """Returns False: its folder is not there."""
    path = _path(file.path)
    try:
        write_private(path, file.data, sync=file.sync)
    except OSError as error:
        if error.errno in _GONE:
            return False
        raise _failed(path, "written", error) from error
    return True


def _names(folder: Path, fresh: bool) -> list[bytes] | None:
    """Names in a folder; None: there is no such folder."""
    try:
        if fresh:
            # Setting the mode that it has anyway goes past every cache: the file server's reply carries the
            # folder's present state, and the client drops an outdated listing.
            folder.chmod(0o700)
        return [os.fsencode(path.name) for path in folder.iterdir()]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(folder, "read", error) from error


def _ends(work: FileWork) -> tuple[list[FileEnd], int]:
    """And how many of the files were looked at."""
    ends: list[FileEnd] = []
    read = size = 0
    for name in work.read:
        if size >= _MOST_BYTES:
            break
        read += 1
        end = _end(name, work.most, work.whole)
        if end is not None:
            ends.append(end)
            size += len(end.data)
    return ends, read


def _end(name: bytes, most: int, whole: bool) -> FileEnd | None:
    path = _path(name)
    try:
        with os.fdopen(open_ours(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if whole and size > most:
                return FileEnd(name, size)
            file.seek(max(0, size - most))
            return FileEnd(name, size, file.read(most))
    except NotOursError as error:
        return FileEnd(name, problem=f"{path}: {error.strerror}", foreign=True)
    except OSError as error:
        if error.errno in _GONE:
            return None
        return FileEnd(name, problem=str(_failed(path, "read", error)))


def _failed(path: Path, doing: str, error: OSError) -> FilesError:
    return FilesError(f"{path}: cannot be {doing}: {error.strerror or error}")


LOCAL_FILES = LocalFiles()
