"""The disk of a node that takes the copy of a bundle, and why others do not."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from adaptor.bag_spec import Bundle
from adaptor.private_files import NotOursError, open_folder
from adaptor.units import format_size

_USUAL = ("/tmp", "/var/tmp")  # noqa: S108 (where a folder of our own is made)
_OF_NETWORKS = re.compile(
    r"(nfs\d*|lustre|gpfs|beegfs|ceph|cifs|smb\d*|9p|virtiofs|afs|panfs|pvfs2|orangefs|wekafs|glusterfs|ocfs2|gfs2"
    r"|fuse\..*|fuse)"
)
_IN_MEMORY = ("tmpfs", "ramfs")
_PART_OF_MEMORY = 0.1  # of the worker's memory, which such a copy takes from its tasks
_KEPT_FREE = 0.1  # the part of a disk that copies leave free
_SMALLEST = 4096  # bytes that a file takes, at least
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def disks_for(named: str, environment: Mapping[str, str], of_job: str | None) -> list[str]:
    """The folders that may take copies, the best first.

    A folder that goes with the job is the last choice: the pilots of one node share copies elsewhere.

    Args:
        named: `node_folder` of the site, with variables of the worker; empty: it names none.
        environment: the worker's.
        of_job: the pilot's own folder for temporary files, which its scheduler removes; None: it has none.
    """
    if named:
        return [_VARIABLE.sub(lambda found: environment.get(found[1] or found[2], ""), named)]
    given = environment.get("TMPDIR", "")
    places = [given if given != of_job else "", *_USUAL, of_job or ""]
    return list(dict.fromkeys(place for place in places if place.startswith("/")))


def problem_with(folder: str, bundle: Bundle, memory: int, mounts: str, *, named: bool) -> str:
    """Why a folder cannot take the copy of a bundle; empty: it can.

    Args:
        memory: bytes that the worker's tasks may use together.
        mounts: the content of /proc/self/mountinfo.
        named: whether the site names this folder: then its file system may be any.
    """
    try:
        status, free = os.stat(folder), os.statvfs(folder)  # noqa: PTH116
    except OSError as error:
        return f"{folder or 'node_folder'}: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode) or not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder}: no folder that you can write to"
    if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        return f"{folder}: other users may rename what is in it (no sticky bit)"
    if bundle.executable and free.f_flag & os.ST_NOEXEC:
        return f"{folder}: mounted noexec, and the bundle has programs"
    kind = kind_of(mounts, status.st_dev)
    if _OF_NETWORKS.fullmatch(kind) and not named:
        return f"{folder}: on a network file system ({kind})"
    needed = bundle.size + _SMALLEST * bundle.files
    if kind in _IN_MEMORY and needed > _PART_OF_MEMORY * memory and not named:
        return f"{folder}: in memory, of which {format_size(needed)} are more than a tenth"
    left = free.f_bavail * free.f_frsize - _KEPT_FREE * free.f_blocks * free.f_frsize
    if needed > left or (free.f_files and bundle.files > free.f_favail):
        return f"{folder}: {format_size(needed)} do not fit: {format_size(max(0.0, left))} may be used"
    return ""


def in_memory(folder: str, mounts: str) -> bool:
    """Whether what lies in a folder takes memory. `mounts`: the content of /proc/self/mountinfo."""
    try:
        return kind_of(mounts, os.stat(folder).st_dev) in _IN_MEMORY  # noqa: PTH116
    except OSError:
        return True


def kind_of(mounts: str, device: int) -> str:
    """The type of the file system of a device; empty: it is not known."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = ""
    for line in mounts.splitlines():
        mount, _, rest = line.partition(" - ")
        if mount.split()[2:3] == [wanted]:
            found = rest.partition(" ")[0]
    return found


def own_folder(disk: str) -> str:
    """The folder for this user's copies on a disk; made (0700) where it is missing.

    Others know its name. What they put there is not used, and others of their making make no difference.

    Raises NotOursError: it is another user's, or open to others; OSError: it cannot be made.
    """
    path = f"{disk.rstrip('/')}/adaptor-{os.geteuid()}"
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except FileExistsError:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            status = os.fstat(handle)
        finally:
            os.close(handle)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise NotOursError("it is not a private folder of yours") from None
    os.close(open_folder(path, ours=True))
    return path
