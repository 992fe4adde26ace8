"""Unpacks an archive into a folder of this node, and verifies it meanwhile: it is read once, in order."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import IO, TYPE_CHECKING

from adaptor.bag_spec import Bundle
from adaptor.bundles.environments import Relocation

if TYPE_CHECKING:
    import tarfile

_PART = 1 << 20  # bytes, whole blocks
_BLOCK = 512  # bytes of a header; the data of a member fill whole blocks
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DamagedBundleError(Exception):
    """The archive is not the one that the bag has staged."""

    def __init__(self, why: str = "") -> None:
        detail = f" ({why})" if why else ""
        super().__init__(f"the archive is damaged, or was changed after the bag was submitted{detail}")


class _Verified:
    """The archive as it is read: all of it, in order."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Raises DamagedBundleError: it ends before."""
        data = self._file.read(size)
        if len(data) < size:
            raise DamagedBundleError("it is too short")
        self._hash.update(data)
        return data

    def member(self) -> tarfile.TarInfo | None:
        """The next header, as `packing` writes them; None: there is none. Raises DamagedBundleError."""
        import tarfile  # only where a bag stages something: a worker starts fast

        longer: dict[bytes, str] = {}
        while (header := self.read(_BLOCK)).strip(b"\0"):
            try:
                found = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
            except tarfile.TarError as error:
                raise DamagedBundleError(str(error)) from error
            if found.type not in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
                found.name = longer.get(tarfile.GNUTYPE_LONGNAME, found.name).removesuffix("/")
                found.linkname = longer.get(tarfile.GNUTYPE_LONGLINK, found.linkname)
                return found
            if found.size > _PART:
                raise DamagedBundleError("a name is too long")
            text = self.read(_padded(found.size))[: found.size]
            longer[found.type] = text.rstrip(b"\0").decode("utf-8", "surrogateescape")
        return None

    def digest(self) -> str:
        """The digest of the whole file, the rest of which is read."""
        while part := self._file.read(_PART):
            self._hash.update(part)
        return self._hash.hexdigest()


def _padded(size: int) -> int:
    return size + -size % _BLOCK


def unpack(archive: IO[bytes], bundle: Bundle, folder: str, relocation: Relocation) -> None:
    """Unpack into a new folder; text of Python environments gets the paths of `relocation`.

    Nothing is written outside of the folder, whatever the archive holds. It is read as `packing` has written
    it: `tarfile`, which reads any archive, takes twice the time.

    Raises:
        DamagedBundleError: it is not the archive of the bundle.
        OSError: the folder cannot be written, or the archive not be read.
    """
    verified, tree = _Verified(archive), _Tree(bundle, folder, relocation)
    try:
        while (member := verified.member()) is not None:
            tree.add(member, verified)
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

    def add(self, member: tarfile.TarInfo, archive: _Verified) -> None:
        """Raises DamagedBundleError, OSError."""
        name = member.name
        above, _, last = name.rpartition("/")
        if above not in self._made or last in ("", ".", "..") or name.startswith("/"):
            raise DamagedBundleError(f"{name!r} has no place in it")
        target = f"{self._folder}/{name}"
        if member.isreg():
            self._left -= member.size
            if self._left < 0:
                raise DamagedBundleError("it has more data")
            self._write(target, member, archive)
        elif member.isdir():
            os.mkdir(target, 0o700)  # noqa: PTH102
            self._made.add(name)
        elif member.issym():
            self._links.append((self._relocation.path(member.linkname), target))
        else:
            raise DamagedBundleError(f"{name!r} is of an unknown kind")

    def add_links(self) -> None:
        """Last, so that no file is written through one."""
        for to, target in self._links:
            os.symlink(to, target)  # noqa: PTH211

    def _write(self, target: str, member: tarfile.TarInfo, archive: _Verified) -> None:
        """A file for reading alone, and with the time that compiled Python code is compared with."""
        handle = os.open(target, _NEW, 0o500 if member.mode & stat.S_IXUSR else 0o400)
        try:
            if member.size <= _PART:
                data = archive.read(_padded(member.size))[: member.size]
                _write_all(handle, self._relocation.content(member.name, data))
            else:
                for begin in range(0, member.size, _PART):
                    size = min(_PART, member.size - begin)
                    _write_all(handle, archive.read(_padded(size))[:size])
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
