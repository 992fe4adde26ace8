"""Process trees: find what was started below this process, and end it, whatever session it fled to.

A process whose parent ends is handed to the nearest subreaper above it. A worker is one, so nothing
that its tasks start can leave its tree, not even by a double fork and `setsid`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 5.0
"""Seconds that SIGKILL may take; a process in uninterruptible sleep outlives even that."""
_PAUSE = 0.005


def become_subreaper() -> bool:
    """Make orphans among the descendants children of this process (prctl(2), Linux 3.4).

    Returns whether it took effect; elsewhere than on Linux nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return False
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def child_pids() -> list[int]:
    """The children of this process (of its main thread), zombies and orphans handed to it included."""
    path = f"/proc/self/task/{os.getpid()}/children"
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN, or no Linux
        return [child.pid for child in _this_process().children()]
    try:
        text = b""
        while part := os.read(handle, 65536):
            text += part
    finally:
        os.close(handle)
    return [int(pid) for pid in text.split()]


def descendants() -> list[psutil.Process]:
    """All living processes below this one, in any session; parents come before their children."""
    return [process for process in _this_process().children(recursive=True) if _lives(process)]


def descendants_by_top(tops: set[int]) -> dict[int, list[psutil.Process]]:
    """The living processes of each of these children's trees: by session, else by chain of parents."""
    found: dict[int, list[psutil.Process]] = {top: [] for top in tops}
    owner: dict[int, int] = {}
    for process in descendants():
        with contextlib.suppress(Exception):  # it may end at any moment
            session = os.getsid(process.pid)
            top = session if session in tops else owner.get(process.ppid())
            if top is not None:
                owner[process.pid] = top
                found[top].append(process)
    return found


def kill_descendants(sig: int) -> int:
    """Signal every living descendant of this process, in any session. Returns how many were signalled.

    With SIGKILL it goes on until none is left, so that a process born meanwhile does not escape; it
    gives up after some seconds on those that cannot die.
    """
    until = time.monotonic() + _PATIENCE
    signalled: set[psutil.Process] = set()
    # A look may miss a process that is handed to us at that very moment, the second look does not.
    while living := descendants() or descendants():
        signalled.update(living)
        send(living, sig)
        if sig != signal.SIGKILL or time.monotonic() > until:
            break
        time.sleep(_PAUSE)
    return len(signalled)


def send(processes: list[psutil.Process], sig: int) -> None:
    """Signal those that still live; a number that was given to another process meanwhile is not hit."""
    import psutil

    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(sig)


def variables_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty where it cannot be read."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    entries = (os.fsdecode(entry).partition("=") for entry in data.split(b"\0"))
    return {name: value for name, equals, value in entries if equals}


def _this_process() -> psutil.Process:
    import psutil  # 20 ms, and not needed before there are processes to look for

    return psutil.Process()


def _lives(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
