"""The state that a Python process keeps between calls: its files, its variables, the look at its memory.

A worker sends this source to the process (`warm`), so it imports nothing of the adaptor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import stat
import sys
import time
from typing import Any

_SHORT = 0.005
"""Seconds. To ask the kernel for the memory of a call costs as much as the call of a short function."""
_FRESH = 0.1  # seconds for which a look at the memory serves short calls


class CallFiles:
    """The folder and the output files of calls: those that one has not used are the next one's."""

    def __init__(self, null: int) -> None:
        self._null = null
        self._handles: list[int] = []
        self._names: list[str] = []
        self._came: list[Any] = []

    def take(self, handles: list[int], names: list[str]) -> None:
        """Take these files from now on. `names`: of the output files until a call has used them; none: of no
        file."""
        self._close()
        self._handles, self._names = handles, names
        self._came = [_state(handle) for handle in handles[1:3]]

    def enter(self) -> None:
        """Prepare the process for a call that begins."""
        folder, out, err = self._handles[:3]
        os.fchdir(folder)
        os.dup2(out, 1)
        os.dup2(err, 2)

    def leave(self) -> None:
        """Leave a call that has ended: output that is written after it belongs to none."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os.dup2(self._null, 1)
        os.dup2(self._null, 2)

    def unused(self, names: list[str]) -> bool:
        """True if the files are empty and as they came: no flag, mode or offset has changed.

        `names`: of this call's output files; those of an earlier attempt of this name are removed.
        """
        try:
            states = [_state(handle) for handle in self._handles[1:3]]
            if states != self._came or any(state[6:8] != (0, 0) for state in states):
                return False
            if os.fstat(self._handles[0]).st_nlink == 0:  # another folder may have its name
                return False
            if self._names:
                for name in names:
                    self._remove_old(name)
        except OSError:
            return False
        return True

    def give(self, names: list[str]) -> None:
        """The files are those of this call for good.

        Raises OSError: they cannot be named, and there is something in them.
        """
        try:
            for handle, unused, name in zip(self._handles[1:3], self._names, names, strict=False):
                folder = self._handles[3]
                try:
                    os.rename(unused, name, src_dir_fd=folder, dst_dir_fd=folder)
                except FileNotFoundError:  # the worker has named it, or it was removed
                    pass
                except OSError:
                    if _state(handle)[6] > 0:
                        raise
        finally:
            self._close()

    def _remove_old(self, name: str) -> None:
        folder = self._handles[3]
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            os.unlink(name, dir_fd=folder)

    def _close(self) -> None:
        for handle in self._handles:
            with contextlib.suppress(OSError):
                os.close(handle)
        self._handles, self._names = [], []


def _state(handle: int) -> Any:
    """Facts of a file that its use changes; at 6 and 7 the size and the offset."""
    status = os.fstat(handle)
    where = os.lseek(handle, 0, os.SEEK_CUR) if stat.S_ISREG(status.st_mode) else 0
    return (*status[:7], where, fcntl.fcntl(handle, fcntl.F_GETFL))


class Variables:
    """The environment variables of single calls."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}

    def set(self, told: dict[str, str]) -> None:
        """Set those of the next call in place of those of the last one."""
        for name, value in self._before.items():
            if name not in told:
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        self._before = {name: self._before.get(name, os.environ.get(name)) for name in told}
        os.environ.update(told)


class CallMemory:
    """The peak of the resident memory of each call; of a short one, what the process held before."""

    def __init__(self) -> None:
        self._renew()

    def begin(self) -> None:
        self._began = time.monotonic()

    def peak(self) -> int:
        """Bytes, of the call that has ended."""
        if time.monotonic() - self._began > _SHORT:
            self._peak, self._since = _peak(), float("-inf")
        return self._peak

    def rest(self) -> None:
        """The answer is sent: look again if the last look is old, or the call was long."""
        if time.monotonic() - self._since > _FRESH:
            self._renew()

    def _renew(self) -> None:
        # From now on the kernel's peak of the resident memory is that of the next call (proc(5)).
        with contextlib.suppress(OSError):
            handle = os.open("/proc/self/clear_refs", os.O_WRONLY)
            try:
                os.write(handle, b"5")
            finally:
                os.close(handle)
        self._peak, self._since = _peak(), time.monotonic()


def _peak() -> int:
    """Bytes."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        handle = os.open("/proc/self/status", os.O_RDONLY)
        try:
            _, _, rest = os.read(handle, 4096).partition(b"VmHWM:")
        finally:
            os.close(handle)
        return int(rest.split(None, 1)[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def used() -> tuple[float, tuple[int, int]]:
    """CPU seconds so far, ended children included, and what changes with every child that was waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return cpu, (children.ru_minflt, children.ru_majflt)
