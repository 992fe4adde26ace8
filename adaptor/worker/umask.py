"""File mode masks by bag: each task and each file that the worker opens for it has that of its bag.

The kernel keeps one mask for all threads of a process that share its file system attributes, so a thread that
opens files leaves that sharing first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_CLONE_FS = 0x200  # of sched.h


def keep(mask: int | None) -> None:
    """Give this thread, and no other, a mask for as long as it runs; None: it keeps that of the process.

    Where the kernel does not allow a thread its own (containers may forbid `unshare`), files of all bags
    become as private as those of the most private one.
    """
    if mask is None:
        return
    import ctypes  # workers start faster without it

    if ctypes.CDLL(None).unshare(_CLONE_FS) == 0:
        os.umask(mask)
    else:
        os.umask(os.umask(0o777) | mask)


@contextlib.contextmanager
def during(mask: int | None) -> Iterator[None]:
    """Give this mask to what this thread starts meanwhile; None: that of the process."""
    if mask is None:
        yield
        return
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
