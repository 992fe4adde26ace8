"""Unpacks an archive into a folder of this node, and verifies it meanwhile: it is read once, in order."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import IO, TYPE_CHECKING, cast

from adaptor.bag_spec import Bundle
from adaptor.bundles.environments import Relocation

if TYPE_CHECKING:
    import tarfile

_PART = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DamagedBundleError(Exception):
    """The archive is not the one that the bag has staged."""

    def __init__(self, why: str = "") -> None:
        detail = f" ({why})" if why else ""
        super().__init__(f"the archive is damaged, or was changed after the bag was submitted{detail}")


class _Verified:
    """The archive as it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        """The digest of the whole file, the rest of which is read."""
        while self.read(_PART):
            pass
        return self._hash.hexdigest()


def unpack(archive: IO[bytes], bundle: Bundle, folder: str, relocation: Relocation) -> None:
    """Unpack into a new folder; text of Python environments gets the paths of `relocation`.

    Nothing is written outside of the folder, whatever the archive holds.

    Raises:
        DamagedBundleError: it is not the archive of the bundle.
        OSError: the folder cannot be written, or the archive not be read.
    """
    import tarfile  # only where a bag stages something: a worker starts fast

    verified, tree = _Verified(archive), _Tree(bundle, folder, relocation)
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", verified), mode="r|", bufsize=_PART) as members:
            for member in members:
                members.members = []  # type: ignore[attr-defined]  # tarfile keeps all of them
                tree.add(member, members)
    except tarfile.TarError as error:
        raise DamagedBundleError(str(error)) from error
    except FileExistsError as error:
        raise DamagedBundleError(f"{error.filename!r} is in it twice") from error
    tree.add_links()
    if verified.digest() != bundle.digest:
        raise DamagedBundleError


class _Tree:
    """A folder that is filled. Paths are texts throughout: there are thousands."""

    def __init__(self, bundle: Bundle, folder: str, relocation: Relocation) -> None:
        os.mkdir(folder, 0o700)  # noqa: PTH102
        self._folder = folder
        self._relocation = relocation
        self._left = bundle.size  # bytes that may still come
        self._made = {""}
        self._links: list[tuple[str, str]] = []

    def add(self, member: tarfile.TarInfo, members: tarfile.TarFile) -> None:
        """Raises DamagedBundleError, OSError."""
        above, _, last = member.name.rpartition("/")
        if above not in self._made or last in ("", ".", "..") or member.name.startswith("/"):
            raise DamagedBundleError(f"{member.name!r} has no place in it")
        target = f"{self._folder}/{member.name}"
        if member.isdir():
            os.mkdir(target, 0o700)  # noqa: PTH102
            self._made.add(member.name)
        elif member.issym():
            self._links.append((self._relocation.path(member.linkname), target))
        elif member.isreg():
            self._left -= member.size
            content = members.extractfile(member)
            if self._left < 0 or content is None:
                raise DamagedBundleError("it has more data")
            self._write(target, member, content)
        else:
            raise DamagedBundleError(f"{member.name!r} is of an unknown kind")

    def add_links(self) -> None:
        """Last, so that no file is written through one."""
        for to, target in self._links:
            os.symlink(to, target)  # noqa: PTH211

    def _write(self, target: str, member: tarfile.TarInfo, content: IO[bytes]) -> None:
        """A file for reading alone, and with the time that compiled Python code is compared with."""
        handle = os.open(target, _NEW, 0o500 if member.mode & stat.S_IXUSR else 0o400)
        try:
            if member.size <= _PART:
                _write_all(handle, self._relocation.content(member.name, content.read()))
            else:
                while part := content.read(_PART):
                    _write_all(handle, part)
            os.utime(handle, (member.mtime, member.mtime))
        finally:
            os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def remove(folder: str) -> None:
    """A copy, or a part of one, as far as that is possible."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
