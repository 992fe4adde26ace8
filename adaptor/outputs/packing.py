"""Packs the outputs of ended attempts into one archive for each worker, so that a bag has few files.

Several nodes cannot append to one file of a network file system without damage: NFS has no append, and each
node caches the file's end. So every archive has one writer, a worker, and a bag has as many as it had
workers. A task writes into files of its own as long as it runs, and after a worker's sudden end these are
still there; none is removed before its content is on the disk a second time.

An archive is a tar file, which `tar -x` unpacks. Next to it lies an index, a line for each member: where its
data begin, their bytes, its name. A line without its end is one that a crash has cut off; the output that it
meant is still a file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Literal

from adaptor.bag_spec import DEFAULT_OUTPUT
from adaptor.private_files import open_ours

Stream = Literal["stdout", "stderr"]
_ENDS: dict[Stream, str] = {"stdout": "out", "stderr": "err"}

PACK = "packed-"
"""Prefix of the names of an archive and its index: `packed-NODE-PID.tar`, `packed-NODE-PID.index`."""
ARCHIVE, INDEX = ".tar", ".index"


def output_name(task: int, attempt: int, stream: Stream) -> str:
    """`5.out`; from the second attempt on, the attempt is part of the name: `5.2.out`."""
    stem = f"{task}" if attempt <= 1 else f"{task}.{attempt}"
    return f"{stem}.{_ENDS[stream]}"


_MOST = 10_000


def numbers_of_others(output: str) -> tuple[int, ...]:
    """Numbers of bags whose output folder of the default name another user has made, at most 10,000.

    Workers write into no such folder. `output`: with `{bag}` in place of the number. Empty if a person has
    named it: such a folder may be a group's.
    """
    above, name = os.path.split(output)
    before, _, behind = DEFAULT_OUTPUT.partition("{bag}")
    found = []
    with contextlib.suppress(OSError), os.scandir(above) as entries:
        for entry in entries if name == DEFAULT_OUTPUT else ():
            number = entry.name.removeprefix(before).removesuffix(behind)
            if entry.name == f"{before}{number}{behind}" and number.isdecimal() and _of_another(entry):
                found.append(int(number))
    return tuple(sorted(found)[-_MOST:])


def _of_another(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return entry.stat(follow_symlinks=False).st_uid != os.geteuid()
    return False


LARGEST = 16 << 20  # bytes of an output that is packed; a larger one stays a file of its own
_BLOCK = 512  # bytes; the members of a tar file fill whole blocks
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Output:
    """Output of an attempt."""

    def __init__(self, name: str, data: bytes, written: float) -> None:
        self.name = name
        self.data = data
        self.written = written  # epoch seconds

    def header(self) -> bytes:
        import tarfile  # only where something is packed: a worker starts fast

        member = tarfile.TarInfo(self.name)
        member.size, member.mode, member.mtime = len(self.data), 0o600, int(self.written)
        member.uid, member.gid = os.getuid(), os.getgid()
        return member.tobuf(tarfile.GNU_FORMAT)


class Packer:
    """The archive of one worker in one output folder, made when the first output is packed."""

    def __init__(self, node: str, pid: int) -> None:
        self._stem = f"{PACK}{node.replace('/', '_')}-{pid}"
        self._made = ""  # the name of its files without their ends; empty: they are not there yet
        self._ends = (0, 0)  # bytes of archive and index that are whole; a full disk may have left more

    def pack(self, names: Sequence[str], folder: int) -> None:
        """Move outputs from an open folder into the archive; other files than plain ones of ours stay.

        Raises OSError: the archive cannot be written; every output is still a file.
        """
        found = [output for name in names if (output := _read(name, folder)) is not None]
        if not found:
            return
        with self._opened(folder) as (archive, index):
            ends = self._append(archive, index, found)
        self._ends = ends
        for output in found:
            with contextlib.suppress(OSError):
                os.unlink(output.name, dir_fd=folder)

    def _append(self, archive: int, index: int, found: Sequence[_Output]) -> tuple[int, int]:
        """The new ends. The index is written when what it names is on the disk."""
        at, lines = self._ends[0], []
        for output in found:
            header, size = output.header(), len(output.data)
            _write(archive, header + output.data + bytes(-size % _BLOCK))
            lines.append(f"{at + len(header)} {size} {output.name}\n")
            at += len(header) + size + -size % _BLOCK
        os.fdatasync(archive)
        text = "".join(lines).encode()
        _write(index, text)
        os.fdatasync(index)
        return at, self._ends[1] + len(text)

    @contextlib.contextmanager
    def _opened(self, folder: int) -> Iterator[tuple[int, int]]:
        """Archive and index, each at its end; made where they are missing."""
        handles: list[int] = []
        try:
            try:
                self._open(handles, folder)
            except FileNotFoundError:  # the first ones, or they were removed
                self._make(folder)
                self._open(handles, folder)
            archive, index = handles
            yield archive, index
        finally:
            for handle in handles:
                os.close(handle)

    def _open(self, handles: list[int], folder: int) -> None:
        if not self._made:
            raise FileNotFoundError
        for suffix, end in zip((ARCHIVE, INDEX), self._ends, strict=True):
            handle = os.open(self._made + suffix, _WRITE, dir_fd=folder)
            handles.append(handle)
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)

    def _make(self, folder: int) -> None:
        """A process of the same number may have been here before."""
        number = 1
        while True:
            stem = self._stem if number == 1 else f"{self._stem}-{number}"
            with contextlib.suppress(FileExistsError):
                os.close(os.open(stem + ARCHIVE, _NEW, 0o666, dir_fd=folder))
                os.close(os.open(stem + INDEX, _NEW, 0o666, dir_fd=folder))
                self._made, self._ends = stem, (0, 0)
                return
            number += 1


def _read(name: str, folder: int) -> _Output | None:
    """Content of an output file; None: it is empty, too large, or no plain file of ours."""
    try:
        handle = open_ours(name, folder=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if status.st_nlink > 1 or not 0 < status.st_size <= LARGEST:
            return None
        return _Output(name, file.read(), status.st_mtime)


def _write(handle: int, data: bytes) -> None:
    """Write all of the data. Raises OSError: the disk is full, for instance."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
