"""Root becomes a user: it may do what that user may, and sees all that the user runs. Linux.

Reading an environment takes more than the user's number: the same group, and a process that may be dumped.
So the right to look at any process is kept, and given up when looking is over.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from adaptor.processes.environment import LOOKING, capabilities

_NOBODY = 65534
_NO_USER = 2**32 - 3
"""The real and the saved user. The user that this process becomes could end or stop it if they were his."""
_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_VERSION = 0x20080522
"""Of capset(2) with 64 capabilities."""


def become(uid: int) -> None:
    """For good; signals, files and folders are this user's from now on. Call it in a process with one thread.

    Raises OSError: the kernel refuses.
    """
    if uid == os.geteuid():
        return
    had = capabilities()  # in a container root may not have all
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    _must(_libc().prctl, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    try:
        os.setresuid(_NO_USER, uid, _NO_USER)
    except OSError:  # a user namespace without that number
        os.setresuid(uid, uid, uid)
    _must(_libc().prctl, _PR_SET_DUMPABLE, 0, 0, 0, 0)
    if not _keep_only(had & LOOKING):
        stop_looking()


def stop_looking() -> None:
    """Give the right to look at all processes up: paths that the user names are followed without it.

    Raises OSError: the kernel refuses.
    """
    if os.geteuid() and not _keep_only(0):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def _keep_only(wanted: int) -> bool:
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    low, high = wanted & 0xFFFFFFFF, wanted >> 32
    content = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    return bool(_libc().capset(header, content) == 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _must(call: Callable[..., int], *arguments: int) -> None:
    if call(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{call.__name__} failed")
